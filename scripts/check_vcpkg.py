#!/usr/bin/env python3
"""Checks the vcpkg port as far as possible without vcpkg.

    scripts/check_vcpkg.py

The manifest against the documented form (fields, names, versions, features); the portfile by running it with CMake, where
the functions of vcpkg are stubs with their documented parameters: they record their arguments, and
vcpkg_cmake_configure configures this project with the packages of this machine. Nothing is built, and no port of vcpkg is
read. The last line is "N passed, N failed, N skipped".
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PORT = ROOT / "packaging/vcpkg/nni"

# Source: vcpkg documentation, vcpkg.json reference; fields that a port may have.
MANIFEST = {"name", "version", "version-semver", "version-date", "version-string", "port-version", "description", "homepage",
            "documentation", "license", "maintainers", "summary", "supports", "dependencies", "default-features", "features"}
FEATURE = {"description", "dependencies", "supports", "license"}
DEPENDENCY = {"name", "default-features", "features", "host", "platform", "version>="}
NAME = re.compile(r"(?!(?:prn|aux|nul|con|lpt[1-9]|com[1-9]|core|default)$)[a-z0-9]+(-[a-z0-9]+)*")

# Source: vcpkg documentation, maintainer functions.
STAND_INS = """
cmake_minimum_required(VERSION 3.25)
function(note text)
  file(APPEND "${NOTES}" "${text}\\n")
endfunction()
function(no_others name)
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${name} does not know: ${arg_UNPARSED_ARGUMENTS}")
  endif()
endfunction()
function(vcpkg_check_linkage)
  cmake_parse_arguments(PARSE_ARGV 0 arg "ONLY_STATIC_LIBRARY;ONLY_DYNAMIC_LIBRARY;ONLY_DYNAMIC_CRT;ONLY_STATIC_CRT" "" "")
  no_others(vcpkg_check_linkage)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "DISABLE_PARALLEL_CONFIGURE;NO_CHARSET_FLAG;WINDOWS_USE_MSBUILD"
    "SOURCE_PATH;GENERATOR;LOGFILE_BASE" "OPTIONS;OPTIONS_RELEASE;OPTIONS_DEBUG;MAYBE_UNUSED_VARIABLES")
  no_others(vcpkg_cmake_configure)
  execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S "${arg_SOURCE_PATH}" -B "${BUILD}" -DBUILD_SHARED_LIBS=OFF
    -DCMAKE_INSTALL_LIBDIR:STRING=lib -DCMAKE_INSTALL_BINDIR:STRING=bin ${arg_OPTIONS}
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(failed)
    message(FATAL_ERROR "this project cannot be configured so")
  endif()
  if(output MATCHES "not used by the project")
    message(FATAL_ERROR "an option does not exist")
  endif()
  note("configure ${arg_OPTIONS}")
endfunction()
function(vcpkg_cmake_install)
  note(install)
endfunction()
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "DO_NOT_DELETE_PARENT_CONFIG_PATH;NO_PREFIX_CORRECTION" "PACKAGE_NAME;CONFIG_PATH" "")
  no_others(vcpkg_cmake_config_fixup)
  note("config ${arg_CONFIG_PATH}")
endfunction()
function(vcpkg_copy_tools)
  cmake_parse_arguments(PARSE_ARGV 0 arg "AUTO_CLEAN" "SEARCH_DIR;DESTINATION" "TOOL_NAMES")
  no_others(vcpkg_copy_tools)
  note("tools ${arg_TOOL_NAMES}")
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "COMMENT" "FILE_LIST")
  no_others(vcpkg_install_copyright)
  if(NOT EXISTS "${arg_FILE_LIST}")
    message(FATAL_ERROR "there is no ${arg_FILE_LIST}")
  endif()
  note(copyright)
endfunction()
"""


def check_manifest(manifest):
    """Yields what is wrong."""
    yield from (f"unknown field {field}" for field in manifest.keys() - MANIFEST if not field.startswith("$"))
    yield from (f"no field {field}" for field in ("name", "description", "license") if field not in manifest)
    header = (ROOT / "include/nni/version.hpp").read_text()
    version = ".".join(re.findall(r"#define NNI_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
    if [manifest.get(field) for field in manifest if field.startswith("version")] != [version]:
        yield f"the version is not {version}"
    features = manifest.get("features", {})
    defaults = manifest.get("default-features", [])
    yield from (f"default feature {name} does not exist" for name in defaults if name not in features)
    for name, feature in features.items():
        if not NAME.fullmatch(name):
            yield f"{name} is no name of a feature"
        yield from (f"feature {name}: unknown field {field}" for field in feature.keys() - FEATURE)
        if not feature.get("description"):
            yield f"feature {name}: no description"
    for dependency in [one for holder in (manifest, *features.values()) for one in holder.get("dependencies", [])]:
        fields = {"name": dependency} if isinstance(dependency, str) else dependency
        yield from (f"dependency {fields}: unknown field {field}" for field in fields.keys() - DEPENDENCY)
        if not NAME.fullmatch(fields.get("name", "")):
            yield f"{fields} is no dependency"
        if fields.get("name") == manifest.get("name"):
            yield from (f"feature {one} does not exist" for one in fields.get("features", []) if one not in features)


def closed(features, chosen):
    """The features that come with those that were chosen."""
    result = set(chosen)
    for name in chosen:
        for one in features[name].get("dependencies", []):
            if isinstance(one, dict) and one["name"] == "nni":
                result |= closed(features, one.get("features", []))
    return result


def check_portfile(features, chosen):
    """Yields what is wrong when the port is made with these features."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "run.cmake").write_text(f"{STAND_INS}\ninclude(\"{PORT}/portfile.cmake\")\n")
        chosen = closed(features, chosen)
        settings = {"NOTES": folder / "notes", "BUILD": folder / "build", "CURRENT_PACKAGES_DIR": folder / "packages",
                    "FEATURES": ";".join(["core", *sorted(chosen)]), "PORT": "nni"}
        run = subprocess.run(["cmake", *(f"-D{name}={value}" for name, value in settings.items()), "-P", folder / "run.cmake"],
                             capture_output=True, text=True)
        if run.returncode:
            yield f"with {sorted(chosen)}: {run.stdout[-600:]}{run.stderr[-600:]}"
            return
        notes = dict(line.partition(" ")[::2] for line in (folder / "notes").read_text().splitlines())
        parts = ";".join(part for part in ("sqlite", "http", "process") if part in chosen)
        cache = (folder / "build/CMakeCache.txt").read_text()
        if not re.search(rf"^NNI_COMPONENTS:\w+={parts}$", cache, re.M):
            yield f"with {sorted(chosen)}: the parts are not {parts or 'none'}: {notes['configure']}"
        rules = (folder / "build/cmake_install.cmake").read_text()
        if f"/{notes['config']}" not in rules:
            yield f"nothing is installed in {notes['config']}"
        installed = set(re.findall(r'/bin" TYPE EXECUTABLE FILES "[^"]*/([\w-]+)"', rules))
        if installed != set(filter(None, notes.get("tools", "").split(";"))):
            yield f"with {sorted(chosen)}: installed are {sorted(installed)}, taken over {notes.get('tools', 'none')}"


def main():
    manifest = json.loads((PORT / "vcpkg.json").read_text())
    features = manifest["features"]
    selections = [manifest["default-features"], [], *([name] for name in features)]
    results = [("vcpkg.json", list(check_manifest(manifest)))]
    results += [(f"portfile, features {', '.join(one) or 'none'}", list(check_portfile(features, one))) for one in selections]
    for name, problems in results:
        print(f"{name}: {'; '.join(problems) or 'ok'}")
    failed = sum(bool(problems) for _, problems in results)
    print(f"{len(results) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
