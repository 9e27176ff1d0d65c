# Builds the operator's image with a container engine, or with PROGRAM=capstan that of the command line. `make image` needs
# none, and builds the same programs:
#   docker build --build-arg VERSION=v0.1.0 --tag capstan .
FROM --platform=$BUILDPLATFORM golang:1.26.8@sha256:0f063af2d465d8dcae54cce04278ada488b96f77b42449c8d071e47d016cc65a AS build
WORKDIR /src

# Modules are downloaded again only if their list changes.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download

COPY . .
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=dev
ARG PROGRAM=operator
ENV CGO_ENABLED=0
ENV GOFLAGS="-trimpath -buildvcs=false -gcflags=all=-dwarf=false"
ENV GOFIPS140=off
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=$TARGETOS GOARCH=$TARGETARCH go build -ldflags="-s -w -X main.version=$VERSION" -o /out/program ./cmd/$PROGRAM

FROM gcr.io/distroless/static:nonroot@sha256:f7f8f729987ad0fdf6b05eeeae94b26e6a0f613bdf46feea7fc40f7bd72953e6
ARG VERSION=dev
LABEL org.opencontainers.image.title=capstan \
      org.opencontainers.image.source=https://github.com/capstan-project/capstan \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=$VERSION
COPY --from=build /out/program /program
USER 65532:65532
ENTRYPOINT ["/program"]
