# colearn on CPUs: docker build -t colearn . && docker run --rm -v "$PWD/out:/out" colearn compare quickstart --out /out
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap \
    && rm -rf /var/lib/apt/lists/*

# torch's CPU build first: what pip would choose on its own brings several GB of CUDA libraries
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY constraints.txt pyproject.toml README.md LICENSE /src/
RUN pip install --no-cache-dir -c /src/constraints.txt --extra-index-url "$TORCH_INDEX" torch

COPY . /src
RUN pip install --no-cache-dir -c /src/constraints.txt "/src[serve,tasks,search,math]" && rm -rf /src

RUN useradd --create-home colearn
USER colearn
WORKDIR /home/colearn
ENV HF_HOME=/home/colearn/.cache/huggingface TOKENIZERS_PARALLELISM=false
EXPOSE 8000
ENTRYPOINT ["colearn"]
CMD ["--help"]
