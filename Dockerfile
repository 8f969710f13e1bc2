# The one binary, with SQLite and libpq in it; TLS is the image's OpenSSL.
FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends libssl-dev pkg-config && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY migrations migrations
COPY seed seed
COPY benches benches
COPY tests tests
RUN cargo build --locked --release --features postgres-tls

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libssl3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --create-home --home-dir /var/lib/countersign countersign \
    && install -d -o countersign /var/lib/countersign/data
COPY --from=build /src/target/release/countersign /usr/local/bin/countersign
# The embedded database, and the sandbox's; on PostgreSQL nothing is kept here.
VOLUME /var/lib/countersign/data
USER countersign
WORKDIR /var/lib/countersign
ENV COUNTERSIGN_BIND=0.0.0.0:8080
EXPOSE 8080
# SIGTERM finishes what runs: give it --shutdown-grace and a little more (docker stop -t 35; the default is 10).
STOPSIGNAL SIGTERM
ENTRYPOINT ["countersign"]
CMD ["serve"]
