# An image with graph-agent and bubblewrap for its sandbox:
#     docker build -t graph-agent .
#     docker run --rm -it -v "$PWD:/workspace" -v graph-agent:/data -e OPENAI_API_KEY -e GRAPH_AGENT_MODEL graph-agent
# Threads are kept in the volume mounted at /data.
FROM python:3.13-slim AS build
WORKDIR /source
COPY requirements.txt .
RUN python -m venv /opt/graph-agent \
    && /opt/graph-agent/bin/pip install --no-cache-dir --require-hashes -r requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY graph_agent graph_agent
COPY tools tools
COPY policy policy
# EXTRAS=postgres,web adds what a shared database and the inbox need.
ARG EXTRAS=
RUN /opt/graph-agent/bin/pip install --no-cache-dir --no-deps . \
    && if [ -n "$EXTRAS" ]; then /opt/graph-agent/bin/pip install --no-cache-dir ".[$EXTRAS]"; fi \
    && /opt/graph-agent/bin/python -m compileall -q /opt/graph-agent/lib

FROM python:3.13-slim
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap git less \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home agent && mkdir /data /workspace && chown agent:agent /data /workspace
COPY --from=build /opt/graph-agent /opt/graph-agent
ENV PATH=/opt/graph-agent/bin:$PATH GRAPH_AGENT_HOME=/data
USER agent
VOLUME /data
WORKDIR /workspace
ENTRYPOINT ["graph-agent"]
