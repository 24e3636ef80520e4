"""`becalm-helm`: helm, but that what `template` renders is the same every time.

Kustomize runs `HELM-COMMAND template ...` for each chart that it inflates, and `HELM-COMMAND pull ...` before it.
Whatever is not `template` becomes the real helm, with nothing imported that is not needed for that.
"""
