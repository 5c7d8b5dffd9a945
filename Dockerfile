# colearn on CPUs: docker build -t colearn . && docker run --rm -v "$PWD/out:/out" colearn compare quickstart --out /out
FROM python:3.11-slim-bookworm

# bubblewrap is what the base image's Debian has
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap \
    && rm -rf /var/lib/apt/lists/*

# torch's CPU build first: what pip would choose on its own brings several GB of CUDA libraries
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY constraints.txt pyproject.toml README.md LICENSE /src/
RUN pip install --no-cache-dir -c /src/constraints.txt --extra-index-url "$TORCH_INDEX" torch

COPY . /src
RUN pip install --no-cache-dir -c /src/constraints.txt "/src[serve,tasks,search,math]" && rm -rf /src

RUN useradd --create-home --uid 1000 colearn
USER 1000
WORKDIR /home/colearn
# TOKENIZERS_PARALLELISM is no secret, whatever its name has in it
# hadolint ignore=DL3064
ENV HF_HOME=/home/colearn/.cache/huggingface TOKENIZERS_PARALLELISM=false
EXPOSE 8000
ENTRYPOINT ["colearn"]
CMD ["--help"]
