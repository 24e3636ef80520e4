"""From a secret seed and a label to values: strings, numbers, identifiers, permutations.

Everything here is a pure function of its arguments. Nothing here knows where labels come from.
"""
