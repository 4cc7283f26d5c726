# The image of every command: agent, extender and quota, for amd64 and arm64. Only the last stage ships. Base images are named by digest: the
# tag says which one that is, the digest decides. Renew both together, from the registry or from github.com/docker-library/repo-info.
#
# Debian 12 has security updates until June 2028, and the compiler of the tests. Two stages run on the machine that builds, also for another
# architecture; nothing is compiled under emulation. Builders that set no TARGETARCH (podman before 4.6) build for their own machine.

# The native parts run inside the containers of others. What makes them run on glibc 2.17 is how they are linked (native/control/symbol_version.h),
# not the age of this base; a test of the native parts holds them to it.
FROM --platform=$BUILDPLATFORM debian:bookworm-20260918-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251 AS native
ARG BUILDARCH
ARG TARGETARCH
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make musl-tools \
  $(case "$BUILDARCH-$TARGETARCH" in amd64-arm64) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;; arm64-amd64) echo gcc-x86-64-linux-gnu libc6-dev-amd64-cross ;; esac) \
  && rm -rf /var/lib/apt/lists/*
COPY native /src/native
RUN case "${TARGETARCH:-$(dpkg --print-architecture)}" in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; *) echo "no native parts for $TARGETARCH" >&2; exit 1 ;; esac \
  && make -C /src/native CC=$machine-linux-gnu-gcc AR=$machine-linux-gnu-ar

FROM --platform=$BUILDPLATFORM node:24-bookworm-slim@sha256:235600a8101ab264e117b1768e925532262668dc9b581ef1dd7d96ced463b8e7 AS files
ARG TARGETARCH
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
# The second tree has the one compiled package for the architecture of the image.
RUN cpu=$(echo "${TARGETARCH:-$(dpkg --print-architecture)}" | sed s/amd64/x64/) && npm ci && mkdir /target && cp package.json package-lock.json .npmrc /target \
  && cd /target && npm ci --omit=dev --ignore-scripts --os=linux --cpu="$cpu"
COPY . .
COPY --from=native /src/native/build native/build
RUN cpu=$(echo "${TARGETARCH:-$(dpkg --print-architecture)}" | sed s/amd64/x64/) && npm run build && IMAGE_CPU=$cpu IMAGE_PACKAGES=/target/node_modules scripts/image-files /image

FROM node:24-bookworm-slim@sha256:235600a8101ab264e117b1768e925532262668dc9b581ef1dd7d96ced463b8e7 AS node

# kmod: the agent loads the driver's modules where their device nodes are missing. util-linux: flock(1) holds the lock of
# a quota journal.
FROM debian:bookworm-20260918-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates kmod util-linux && rm -rf /var/lib/apt/lists/*
COPY --from=node /usr/local/bin/node /usr/bin/node
COPY --from=files /image/ /
# Compiled code, from scripts/compile-cache.mjs: the agent starts faster.
ENV NODE_COMPILE_CACHE=/usr/lib/gpu-manager/compile-cache NODE_COMPILE_CACHE_PORTABLE=1
LABEL org.opencontainers.image.title="gpu-manager" org.opencontainers.image.licenses="Apache-2.0"
# The address of the page of "gpu-manager demo": a published port reaches no loopback address. Other commands do not read it.
ENV GPU_MANAGER_DEMO_ADDR=::
EXPOSE 5678 5680
# Root, and the flags of the start script of tkestack gpu-manager's image: a DaemonSet that was written for that image needs no change but the
# image's name. Manifests of this project name their own arguments and users: extender and quota run as another user than root.
ENTRYPOINT ["gpu-manager"]
CMD ["run", "--extra-config=/etc/gpu-manager/extra-config.json", "--share-mode=true", "--volume-config=/etc/gpu-manager/volume.conf", "--query-addr=::"]
