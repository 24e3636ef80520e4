"""Where charts come from: reading, checking and staging them, and running the tools on them.

Nothing here knows Argo CD, seeds or template text. Charts and archives come from people we do
not trust, so every reader has limits and every path is checked before it is used.
"""
