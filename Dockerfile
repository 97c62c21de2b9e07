# The command line, generated programs and the arena. Programs are held by the kernel's own walls, so the container needs
# no privileges; where its seccomp profile blocks Landlock or user namespaces, `tradeassay doctor` names what is missing.
FROM python:3.11-slim-bookworm
RUN useradd --create-home --uid 10001 assay \
    && install --directory --owner=assay --group=assay /home/assay/data /home/assay/runs
WORKDIR /srv/tradeassay
COPY requirements/test.txt requirements/test.txt
COPY packages packages
# The versions that the tests run with; compiled, because the user below cannot write there.
RUN pip install --no-cache-dir --compile --constraint requirements/test.txt ./packages/tradeassay-bench "packages/tradeassay-programs[code]" \
    "packages/tradeassay-arena[postgres]" "packages/tradeassay[serve]"
USER assay
WORKDIR /home/assay
ENV TRADEASSAY_HOME=/home/assay/data
VOLUME ["/home/assay/data", "/home/assay/runs"]
ENTRYPOINT ["tradeassay"]
CMD ["--help"]
