# The sidecar image: becalm, the official helm release and plugin.yaml.
#
#   docker build -t becalm:0.1.0 \
#     --build-arg HELM_VERSION=<version, for example 4.1.4> \
#     --build-arg HELM_SHA256=<SHA-256 of helm-v<version>-linux-<architecture>.tar.gz> .
#
# HELM_VERSION and HELM_SHA256 have no defaults on purpose: take the sum from the page of that
# helm release, so that what goes into the image is what you looked up. The sum belongs to one
# architecture; TARGETARCH is set by the builder.
#
# This is a first version, not yet built by the project's own checks. Later releases finish it: kustomize, Python dependencies locked by
# hash, the base image pinned by digest, and an image that is built, scanned and published.
# argocd-cmp-server is not in the image: Argo CD's init container puts it into the volume
# that is mounted at /var/run/argocd (see manifests/).

ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY plugin ./plugin
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
 && python -m venv /opt/becalm \
 && /opt/becalm/bin/python -m pip install --no-cache-dir /wheels/becalm-*.whl

FROM ${PYTHON_IMAGE} AS helm
ARG HELM_VERSION
ARG HELM_SHA256
ARG TARGETARCH=amd64
RUN test -n "${HELM_VERSION}" && test -n "${HELM_SHA256}" \
 || { echo "give --build-arg HELM_VERSION=... and --build-arg HELM_SHA256=..." >&2; exit 1; }
ADD https://get.helm.sh/helm-v${HELM_VERSION}-linux-${TARGETARCH}.tar.gz /tmp/helm.tar.gz
RUN echo "${HELM_SHA256}  /tmp/helm.tar.gz" | sha256sum --check --strict - \
 && tar --extract --gzip --file /tmp/helm.tar.gz --directory /usr/local/bin \
        --strip-components=1 --no-same-owner "linux-${TARGETARCH}/helm" \
 && chmod 0755 /usr/local/bin/helm

FROM ${PYTHON_IMAGE}
COPY --from=wheel /opt/becalm /opt/becalm
COPY --from=helm /usr/local/bin/helm /usr/local/bin/helm
COPY --chmod=0644 plugin.yaml /home/argocd/cmp-server/config/plugin.yaml

# The root file system is meant to be read-only: whatever is written goes to /tmp, which the
# pod mounts as an emptyDir of its own.
ENV PATH=/opt/becalm/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/tmp \
    TMPDIR=/tmp \
    HELM_CACHE_HOME=/tmp/helm/cache \
    HELM_CONFIG_HOME=/tmp/helm/config \
    HELM_DATA_HOME=/tmp/helm/data \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# The repo-server runs as 999 and reaches the plugin's socket by file mode only. The number,
# not a name, lets `runAsNonRoot` be checked.
USER 999:999
ENTRYPOINT ["/var/run/argocd/argocd-cmp-server"]
