#!/usr/bin/env python3
"""Prepares the input of Doxygen, and checks the links of its output. Called by scripts/docs.sh.

    scripts/doc_site.py prepare OUT      documents and public headers, the layout and the frame of the pages
    scripts/doc_site.py fix SITE       repairs defects of Doxygen's output
    scripts/doc_site.py check SITE [--external]

Markdown: titles get names, links between files of the repository become links between pages of the site, and the name of
a program's file is shown above it. Headers: each is documented as a file, and an operation that a policy has because its
concept asks for it refers to that concept unless it says something itself. Lines keep their numbers in headers.
"""
import html.parser
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What the concept of a role asks for: these members mean what the concept says.
ROLES = {
    "training_service": ("TrainingService", "platform mount_type capabilities start resources submit_trial_job "
                         "cancel_trial_job next_event clean_up adopt fetch_log set_cluster_metadata "
                         "get_cluster_metadata next_message acknowledge send settle"),
    "scheduler": ("Scheduler", "place hold release"),
    "storage": ("Storage", "mount_type open upload download read list remove mount close changed"),
    "metric_transport": ("MetricTransportOver", "open environment prepare next_message acknowledge send settle close"),
    "tuner": ("Tuner", "start update_search_space generate observe"),
    "assessor": ("Assessor", "start assess trial_ended"),
    "advisor": ("Advisor", "start request report trial_ended next_order stop"),
    "data_store": ("DataStore", "open append written synced load page metrics close"),
}
MOVE = re.compile(r" +(?:(\w+)\(\1&&[^,)]*\)|\w+& operator=\(\w+&&[^,)]*\))")
CHANNEL = "next_message acknowledge send settle".split()  # of transports, and of services that bring messages


def page_name(path):
    relative = path.relative_to(ROOT / "docs").with_suffix("")
    return "page_" + re.sub(r"\W", "_", str(relative)).lower()


def link(page, match):
    text, target = match.group(1).strip("`"), match.group(2)  # the text of a reference cannot be code
    if re.match(r"[a-z]+:|#", target):
        return match.group(0)
    name, _, anchor = target.partition("#")
    path = pathlib.Path(os.path.normpath(page.parent / name))
    if not path.exists():
        sys.exit(f"{page}: the link to {target} leads nowhere")
    if path.suffix == ".md" and ROOT / "docs" in path.parents:
        if anchor:
            return f"[{text}](@ref {page_name(path)}_{re.sub(r'[^a-z0-9]', '_', anchor)})"
        return f"[{text}](@ref {page_name(path)})" if path != ROOT / "docs/README.md" else f"[{text}](@ref index)"
    if ROOT / "include" in path.parents and path.is_file():
        concept = re.search(r"^concept (\w+)", path.read_text(), re.M) if path.parent.name == "concepts" else None
        if concept:
            return f"[{text}](@ref nni::{concept.group(1)})"
        return f"[{text}](@ref {path.relative_to(ROOT / 'include')})"
    return match.group(1)  # a file that the site does not hold


def markdown(page, text):
    lines = []
    fenced = False
    for number, line in enumerate(text.split("\n")):
        fence = re.match(r"```(\w*)(?: file=(\S+))?$", line)
        if fence:
            fenced = not fenced
            if fenced:
                if fence.group(2):
                    lines += [f"<div class=\"file-name\">{fence.group(2)}</div>", ""]
                lines.append("```{." + (fence.group(1) or "txt") + "}")
                continue
        elif not fenced:
            heading = re.match(r"(#+) (.*)$", line)
            if heading and number == 0:
                line = f"{line} {{#{page_name(page)}}}" if page != ROOT / "docs/README.md" else line
            elif heading:
                anchor = re.sub(r"[^a-z0-9]", "_", heading.group(2).lower())
                line = f"{line} {{#{page_name(page)}_{anchor}}}"
            line = re.sub(r"(?<!!)\[((?:[^][]|\[[^][]*\])+)\]\(([^) ]+)\)", lambda match: link(page, match), line)
        lines.append(line)
    return "\n".join(lines)


def page_reference(match):
    path = ROOT / match.group(0)
    return f"@ref {page_name(path)}" if path.exists() else match.group(0)


def befriended(lines, number):
    """An operator of the interface says what it does; who else may look inside is no part of the interface."""
    if lines[number - 1].strip().startswith("///"):
        return
    if "= default" in lines[number]:
        lines[number] = f"/** Compares member by member. */ {lines[number]}"
        return
    lines[number] = ""
    if lines[number - 1].strip().startswith("template"):
        lines[number - 1] = ""


def header(text):
    lines = text.split("\n")
    role = None
    for number, line in enumerate(lines):
        # Promises keep their numbers, also in a list that begins with 7.
        line = lines[number] = re.sub(r"^( *)/// +(\d+)\. ", r"\1///  - **\2.** ", line)
        if line.lstrip().startswith("///"):
            line = re.sub(r"^( *///) Source: ", r"\1 @sourced ", line)
            line = lines[number] = re.sub(r"\bdocs/([\w/-]+)\.md\b", page_reference, line)
        if number == 0 and "/// @file" not in text:
            lines[0] = "/** @file */ " + line
        if re.match(r"(template|class|struct|\};)", line):
            role = None
        tag = re.match(r"\s+using role = (?:nni::)?role::(\w+);$", line)
        if tag and tag.group(1) in ROLES:
            role = ROLES[tag.group(1)]
            lines[number] = f"/** Says which concept this type models: nni::{role[0]}. */ {line}"
            continue
        if re.match(r"\s+friend ", line):
            befriended(lines, number)
            continue
        before = lines[number - 1].strip()
        if MOVE.match(line) and not before.startswith("///"):
            lines[number] = f"/** Moves; what is left behind can only be destroyed or assigned to. */ {line}"
        if not role or before.startswith("///") or "///<" in line or not before.endswith(("{", "}", ";", ":", "")):
            continue
        if before and before[-1] not in "{};:" and not before.startswith("//"):
            continue  # goes on from the line before
        name = re.match(r"  (?:\[\[nodiscard\]\] )?(?:static constexpr |using |template <.*> )?[\w:<>, ]*?\b(\w+)(?:\(| = )", line)
        if name and name.group(1) in role[1].split():
            concept = "TrialChannel" if name.group(1) in CHANNEL else role[0]
            lines[number] = f"/** As nni::{concept} says. */ {line}"
    return "\n".join(lines)


# The contents at the left, in the order in which people read them.
CONTENTS = """
    <tab type="mainpage" visible="yes" title="Start here"/>
    <tab type="user" url="@ref page_tutorial" title="Tutorial"/>
    <tab type="usergroup" url="@ref page_concepts_readme" title="How to write a policy">
HOWTO    </tab>
    <tab type="user" url="@ref page_concepts_readme" title="Concepts and promises"/>
    <tab type="concepts" visible="yes" title="Reference: concepts"/>
    <tab type="classlist" visible="yes" title="Reference: classes"/>
    <tab type="filelist" visible="yes" title="Reference: headers"/>
    <tab type="user" url="@ref page_packaging" title="Packaging"/>
    <tab type="user" url="@ref page_glossary" title="Glossary"/>
    <tab type="user" url="@ref page_design" title="Design"/>
    <tab type="user" url="@ref page_formats_journal" title="Format of the journal"/>
    <tab type="user" url="@ref page_reliability" title="Reliability"/>
    <tab type="user" url="@ref page_performance" title="Performance"/>
"""
SCRIPTS = """<script type="text/javascript" src="$relpath^doxygen-awesome-darkmode-toggle.js"></script>
<script type="text/javascript" src="$relpath^doxygen-awesome-fragment-copy-button.js"></script>
<script type="text/javascript" src="$relpath^doxygen-awesome-paragraph-link.js"></script>
<script type="text/javascript">
  DoxygenAwesomeDarkModeToggle.init()
  DoxygenAwesomeFragmentCopyButton.init()
  DoxygenAwesomeParagraphLink.init()
</script>
"""


def prepare(out):
    for path in sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/*.dox"), *ROOT.glob("include/nni/**/*.hpp")]):
        target = out / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        prepared = {".md": lambda text, path=path: markdown(path, text), ".hpp": header}.get(path.suffix, str)
        target.write_text(prepared(path.read_text()))
    layout = out / "layout.xml"
    subprocess.run(["doxygen", "-l", layout], check=True, stdout=subprocess.DEVNULL)
    pages = sorted(ROOT.glob("docs/how-to/*.md"))
    how_to = "".join(f'      <tab type="user" url="@ref {page_name(page)}" title="{page.stem.replace("-", " ").capitalize()}"/>\n'
                     for page in pages)
    text = re.sub(r"(<navindex>).*?(</navindex>)", lambda match: match.group(1) + CONTENTS.replace("HOWTO", how_to)
                  + "  " + match.group(2), layout.read_text(), flags=re.S)
    layout.write_text(text)
    frame = out / "header.html"
    subprocess.run(["doxygen", "-w", "html", frame, out / "footer.html", out / "unused.css"], check=True,
                   stdout=subprocess.DEVNULL)
    frame.write_text(frame.read_text().replace("</head>", SCRIPTS + "</head>"))


def fix(site):
    """Doxygen links to the list of nested classes also where all of them are private, and there is none."""
    for path in site.glob("*.html"):
        text = path.read_text(errors="surrogateescape")
        if "#nested-classes" in text and 'id="nested-classes"' not in text:
            text = re.sub(r'<a href="#nested-classes">\w+</a>( &#124;)?\s*', "", text)
            path.write_text(text, errors="surrogateescape")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.names, self.links = set(), []

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("id", "name") and value:
                self.names.add(value)
            if key in ("href", "src") and value:
                self.links.append(value)


def check(site, external):
    pages = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = Page()
        pages[path].feed(path.read_text(errors="replace"))
    names = {str(path): page.names for path, page in pages.items()}
    exists = {}
    broken, outside, followed = set(), set(), 0
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme in ("http", "https") or link.startswith("//"):
                outside.add(link)
                continue
            if parts.scheme:
                continue
            followed += 1
            target = os.path.normpath(path.parent / urllib.parse.unquote(parts.path)) if parts.path else str(path)
            if target not in exists:
                exists[target] = os.path.exists(target)
            if not exists[target]:
                broken.add(f"{path.relative_to(site)}: {link} leads nowhere")
            elif parts.fragment and target in names and urllib.parse.unquote(parts.fragment) not in names[target]:
                broken.add(f"{path.relative_to(site)}: {link} leads to no such place")
    for link in sorted(outside) if external else []:
        try:
            request = urllib.request.Request(link, method="HEAD", headers={"User-Agent": "link check"})
            urllib.request.urlopen(request, timeout=20)
        except OSError as failure:
            broken.add(f"{link}: {failure}")
    print("\n".join(sorted(broken)))
    print(f"links: {followed} inside, {len(outside)} outside ({'followed' if external else 'not followed'}), {len(broken)} broken")
    return 1 if broken else 0


if sys.argv[1] == "prepare":
    prepare(pathlib.Path(sys.argv[2]).resolve())
elif sys.argv[1] == "fix":
    fix(pathlib.Path(sys.argv[2]).resolve())
else:
    sys.exit(check(pathlib.Path(sys.argv[2]).resolve(), "--external" in sys.argv))
