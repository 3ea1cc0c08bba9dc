#!/usr/bin/env bash
# Installs what is missing on a fresh Debian 12 or 13 (or Ubuntu 24.04): system packages through apt, then a .venv with torch
# and the test requirements. Does nothing when everything is there. Used by the Makefile.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build ccache git libginac-dev libfmt-dev libxxhash-dev libcli11-dev nlohmann-json3-dev
          libminizip-dev nettle-dev catch2 pkg-config)
# The interpreter that the .venv is made from: its headers and venv module come from apt only when it is the system's.
python=${PYTHON:-python3}
if [ "$(command -v "$python" || echo /usr/bin/python3)" = /usr/bin/python3 ]; then
  packages+=(python3 python3-venv python3-dev)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing system packages: ${missing[*]}"
  sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo)
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >/dev/null
fi

stamp=.venv/.requirements
if ! cmp -s requirements-dev.txt "$stamp"; then
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  echo "installing Python packages into .venv (torch is large: this takes a minute or two)"
  .venv/bin/python -m pip install -q --no-compile --disable-pip-version-check -r requirements-dev.txt
  cp requirements-dev.txt "$stamp"
fi
