"""The warm service: a process that has everything loaded and forks one child for each render.

A fork starts with all modules, rules and definitions in memory that it shares with its parent, and ends with its render.
So renders run side by side in spite of Python's global lock, a render that goes wrong or is given up takes nothing along,
its time limit is a kill, and memory cannot grow from one to the next. The parent has one thread and touches no chart.
"""
