FROM golang:1.23.4-alpine3.21@sha256:c23339199a08b0e12032856908589a6d41a0dab141b8b3b21f156fc571a3f1d3 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -o /worker ./cmd/worker

FROM scratch
COPY --from=build --chmod=0555 /worker /worker
USER 65532:65532
ENTRYPOINT ["/worker"]
