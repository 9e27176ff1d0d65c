# Builds the operator's image. Its files are the same as those of `make image`, which needs no container engine. For several platforms:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=v1.2.3 .
FROM --platform=$BUILDPLATFORM golang:1.26.8@sha256:0f063af2d465d8dcae54cce04278ada488b96f77b42449c8d071e47d016cc65a AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=dev TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go run ./cmd/dist rootfs --version "$VERSION" --arch "$TARGETARCH" --output /rootfs

FROM scratch
COPY --from=build /rootfs /
USER 65532:65532
ENTRYPOINT ["/operator"]
