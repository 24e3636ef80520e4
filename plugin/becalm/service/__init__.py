"""The warm service: a process that has everything loaded and forks others for what is asked of it.

What is kept is read by processes that stand by for that, and render nothing. A render is a fork of its own: it starts with
all modules, rules and definitions in memory that it shares with its parent, and ends with its render. So renders run side
by side in spite of Python's global lock, a render that goes wrong or is given up takes nothing along, its time limit is a
kill, and memory cannot grow from one to the next. The parent has one thread and touches no chart.
"""
