# The image of every command: agent, extender and quota. Three stages; only the last one ships. Base images are named by digest: the tag says
# which one that is, the digest decides. Renew both together, from the registry or from github.com/docker-library/repo-info.

# The native parts run inside the containers of others: built here on an old C library, and bound to no symbol newer than
# glibc 2.17 (a test of the native parts holds them to it).
FROM debian:bullseye-20260803-slim@sha256:f313b4bd62667092a59b3a664d7d3ab8b5e65f41675f48e81455a15dc5abe792 AS native
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make musl-tools && rm -rf /var/lib/apt/lists/*
COPY native /src/native
RUN make -C /src/native

FROM node:24-bookworm-slim@sha256:235600a8101ab264e117b1768e925532262668dc9b581ef1dd7d96ced463b8e7 AS files
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
COPY --from=native /src/native/build native/build
RUN npm run build && scripts/image-files /image

# kmod: the agent loads the driver's modules where their device nodes are missing. util-linux: flock(1) holds the lock of
# a quota journal.
FROM debian:bookworm-20260918-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates kmod util-linux && rm -rf /var/lib/apt/lists/*
COPY --from=files /usr/local/bin/node /usr/bin/node
COPY --from=files /image/ /
LABEL org.opencontainers.image.title="gpu-manager" org.opencontainers.image.licenses="Apache-2.0"
# The address of the page of "gpu-manager demo": a published port reaches no loopback address. Other commands do not read it.
ENV GPU_MANAGER_DEMO_ADDR=0.0.0.0
EXPOSE 5678
# Root, and the flags of the start script of tkestack gpu-manager's image: a DaemonSet that was written for that image needs no change but the
# image's name. Manifests of this project name their own arguments and users: extender and quota run as another user than root.
ENTRYPOINT ["gpu-manager"]
CMD ["run", "--extra-config=/etc/gpu-manager/extra-config.json", "--share-mode=true", "--volume-config=/etc/gpu-manager/volume.conf", "--query-addr=0.0.0.0"]
