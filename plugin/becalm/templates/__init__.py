"""Go template text: tokens, scopes, taint, rewriting, and the templates that are injected.

Nothing here knows Helm's files, YAML objects or seeds. Text goes in, text comes out.
"""
