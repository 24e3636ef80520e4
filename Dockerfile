# The sidecar image: becalm, the official releases of helm and kustomize, git, and plugin.yaml.
#
#   docker build -t example/becalm:0.1.0 .
#
# Everything from elsewhere is pinned. The base image is pinned by digest, which belongs to python:3.11-slim for all
# architectures; `docker buildx imagetools inspect python:3.11-slim` prints the newest. helm and kustomize are pinned by
# the sums that their releases publish, in image/tools.sha256: for another version, put its sum there and give
# the version as build argument. Python packages are pinned by hash in requirements.lock (`make lock`). Only Debian's git and
# openssh-client have no version here: Debian takes old ones away, so that a pinned one stops building.
#
# argocd-cmp-server is not in the image: Argo CD's init container puts it into the volume that is
# mounted at /var/run/argocd (see manifests/). Needs BuildKit, which sets TARGETARCH (amd64 or arm64).

ARG PYTHON_IMAGE=python:3.11-slim@sha256:90744cff8f32887f075c47d747a173ff333e9e98801667af93c357fa9f5e28ff

FROM ${PYTHON_IMAGE} AS becalm
WORKDIR /src
COPY requirements-build.lock requirements.lock ./
# Wheels only: nothing of a dependency runs while it is installed. The virtual environment gets no pip of its own.
RUN python -m venv --without-pip /opt/becalm \
 && python -m venv /opt/build \
 && /opt/build/bin/python -m pip install --no-cache-dir --require-hashes --only-binary :all: --requirement requirements-build.lock \
 && /opt/build/bin/python -m pip --python /opt/becalm/bin/python install \
        --no-cache-dir --no-compile --require-hashes --only-binary :all: --requirement requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY plugin ./plugin
COPY image/becalm.c ./
# The command that pip writes is replaced by one in C, since Argo CD starts it for every render and Python alone takes ten times
# as long as what is to be done. What it does not do itself it leaves to becalm-python. The compiler is pinned as the packages are.
RUN /opt/build/bin/python -m pip wheel --no-cache-dir --no-deps --no-index --no-build-isolation --wheel-dir /wheels . \
 && /opt/build/bin/python -m pip --python /opt/becalm/bin/python install --no-compile --no-deps --no-index /wheels/becalm-*.whl \
 && /opt/becalm/bin/python -m becalm.launcher /opt/becalm/bin/becalm-python \
 && /opt/build/bin/python -m ziglang cc -target "$(uname -m)-linux-musl" -static -O2 -s '-DPYTHON_COMMAND="/opt/becalm/bin/becalm-python"' \
        becalm.c -o /opt/becalm/bin/becalm \
 && python -m compileall -q --invalidation-mode unchecked-hash /opt/becalm/lib

FROM ${PYTHON_IMAGE} AS tools
ARG TARGETARCH
ARG HELM_VERSION=4.1.4
ARG HELM3_VERSION=3.17.3
ARG KUSTOMIZE_VERSION=5.8.1
WORKDIR /tools
COPY image/tools.sha256 ./
ADD https://get.helm.sh/helm-v${HELM_VERSION}-linux-${TARGETARCH}.tar.gz ./
ADD https://get.helm.sh/helm-v${HELM3_VERSION}-linux-${TARGETARCH}.tar.gz ./
ADD https://github.com/kubernetes-sigs/kustomize/releases/download/kustomize/v${KUSTOMIZE_VERSION}/kustomize_v${KUSTOMIZE_VERSION}_linux_${TARGETARCH}.tar.gz ./
# A release without a sum in the list ends the build: grep finds no line then.
RUN set -eu; mkdir bin; \
    for file in "helm-v${HELM_VERSION}-linux-${TARGETARCH}" "helm-v${HELM3_VERSION}-linux-${TARGETARCH}" \
            "kustomize_v${KUSTOMIZE_VERSION}_linux_${TARGETARCH}"; do \
        grep -F "  ${file}.tar.gz" tools.sha256 > wanted \
            || { echo "image/tools.sha256 has no sum of ${file}.tar.gz: take it from the release's page" >&2; exit 1; }; \
        sha256sum --check --strict wanted; \
    done; \
    tar --extract --gzip --no-same-owner --file "helm-v${HELM3_VERSION}-linux-${TARGETARCH}.tar.gz" "linux-${TARGETARCH}/helm"; \
    mv "linux-${TARGETARCH}/helm" bin/helm3; \
    tar --extract --gzip --no-same-owner --file "helm-v${HELM_VERSION}-linux-${TARGETARCH}.tar.gz" "linux-${TARGETARCH}/helm"; \
    mv "linux-${TARGETARCH}/helm" bin/helm; \
    tar --extract --gzip --no-same-owner --file "kustomize_v${KUSTOMIZE_VERSION}_linux_${TARGETARCH}.tar.gz" --directory bin kustomize; \
    chmod 0755 bin/helm bin/helm3 bin/kustomize

FROM ${PYTHON_IMAGE}
# The repo-server runs as 999 and reaches the plugin's socket by file mode only. ssh refuses users without a name.
# Modules of Python itself are compiled here: the base image has none, and the root file system is read-only later, so every
# process would compile them again.
# hadolint ignore=DL3008
RUN groupadd --gid 999 argocd \
 && useradd --uid 999 --gid 999 --no-create-home --home-dir /home/argocd --shell /usr/sbin/nologin argocd \
 && apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates git openssh-client \
 && rm -rf /var/lib/apt/lists/* \
 && python -m compileall -q --invalidation-mode unchecked-hash -x '/(lib2to3|site-packages)/' /usr/local/lib/python3.11
COPY --from=becalm /opt/becalm /opt/becalm
COPY --from=tools /tools/bin/ /usr/local/bin/
COPY --chmod=0644 plugin.yaml /home/argocd/cmp-server/config/plugin.yaml

# The root file system is meant to be read-only: whatever is written goes to /tmp, which the
# pod mounts as an emptyDir of its own. helm 3 is /usr/local/bin/helm3: BECALM_HELM chooses it.
ENV PATH=/opt/becalm/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/tmp \
    TMPDIR=/tmp \
    HELM_CACHE_HOME=/tmp/helm/cache \
    HELM_CONFIG_HOME=/tmp/helm/config \
    HELM_DATA_HOME=/tmp/helm/data \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# The number, not a name, lets `runAsNonRoot` be checked.
USER 999:999
# Kubernetes probes the web port; there is no shell or client in between.
HEALTHCHECK NONE
# The port of health, metrics and the page; the render socket is a file.
EXPOSE 9360
ENTRYPOINT ["becalm", "sidecar"]
