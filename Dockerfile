# The image of every command: agent, extender and quota. Three stages; only the last one ships.

# The native parts run inside the containers of others: built here on an old C library, and bound to no symbol newer than
# glibc 2.17 (a test of the native parts holds them to it).
FROM debian:11-slim AS native
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make musl-tools && rm -rf /var/lib/apt/lists/*
COPY native /src/native
RUN make -C /src/native

FROM node:24-bookworm-slim AS files
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
COPY --from=native /src/native/build native/build
RUN npm run build && scripts/image-files /image

# kmod: the agent loads the driver's modules where their device nodes are missing. util-linux: flock(1) holds the lock of
# a quota journal.
FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates kmod util-linux && rm -rf /var/lib/apt/lists/*
COPY --from=files /usr/local/bin/node /usr/bin/node
COPY --from=files /image/ /
LABEL org.opencontainers.image.title="gpu-manager" org.opencontainers.image.licenses="Apache-2.0"
# The agent needs root, and its manifest says so; extender and quota run as this user.
USER 65532
ENTRYPOINT ["gpu-manager"]
CMD ["run"]
