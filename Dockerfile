# The command line and the arena. Strategies are held by the kernel's own walls, so the container needs no privileges;
# where its seccomp profile blocks Landlock or user namespaces, `tradeassay doctor` says which wall is missing.
FROM python:3.11-slim-bookworm
RUN useradd --create-home --uid 10001 assay
WORKDIR /srv/tradeassay
COPY requirements/runtime.txt requirements/runtime.txt
RUN pip install --no-cache-dir --no-deps -r requirements/runtime.txt "psycopg[binary]>=3.2"
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --no-deps . && python -m compileall -q /usr/local/lib/python3.11/site-packages/tradeassay
USER assay
WORKDIR /home/assay
ENV TRADEASSAY_HOME=/home/assay/data
VOLUME ["/home/assay/data", "/home/assay/runs"]
ENTRYPOINT ["tradeassay"]
CMD ["--help"]
