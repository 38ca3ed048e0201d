#!/usr/bin/env python3
"""Lists public symbols without documentation. Called by scripts/docs.sh.

    scripts/doc_symbols.py XML      reads the XML output of Doxygen
    scripts/doc_symbols.py --self-test

Every namespace, type, concept, function, variable and enumerator needs a comment. A function of several parameters has to
explain each of them: by @param, by its name in a sentence, or by a type and a name that need no words (`RunId run`,
`std::string_view text`; see `is_self_explanatory`). Of a single parameter the sentence is enough. A parameter is never
named by a pronoun (`what`, `which`, `when`). Constructors whose parameters explain themselves, destructors, copies, moves and
operations that a concept requires need no comment. "As ..." and "The same ..." refer to the function above. The heading of a group (@name) stands
for its members, and a class may explain a parameter of its members once, in code letters.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree


PRONOUNS = {"what", "which", "who", "how", "why", "when", "where"}
# Names with one meaning in the whole tree, whatever their type.
KNOWN = {"options", "settings", "executor", "context", "log", "clock", "store", "directory", "folder", "path", "file", "name",
         "key", "url", "host", "port", "out", "now", "seed", "message", "code", "error", "command", "arguments", "object", "event"}
# Names that say all that there is to say about a value of these types.
BY_TYPE = {
    "text": {"string", "string_view", "char"},
    "line": {"string", "string_view", "char"},
    "reason": {"string", "string_view", "char"},
    "prefix": {"string", "string_view", "char"},
    "json": {"string", "string_view", "value", "object", "event"},
    "bytes": {"string_view", "span", "string"},
    "explanation": {"string", "string_view"},
    "values": {"Parameters"},
    "value": {"Metric"},
    "granted": {"Placement"},
    "a": {"double"}, "b": {"double"}, "x": {"double"},
    "at": {"TimePoint", "SteadyPoint"},
    "deadline": {"TimePoint", "SteadyPoint"},
    "limit": {"size_t", "Duration"},
    "interval": {"Duration"},
    "delay": {"Duration"},
    "timeout": {"Duration"},
}
NO_WORD = {"std", "nni", "const", "constexpr", "noexcept", "vector", "span", "optional", "unique_ptr", "shared_ptr", "map",
           "set", "boost", "asio", "json", "filesystem", "class", "typename"}


def type_words(type_name):
    """Returns the identifiers of a C++ type, and for each of them its words in lower case."""
    names = [name for name in re.findall(r"[A-Za-z_]\w*", type_name) if name not in NO_WORD]
    return names, [re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name) for name in names]


def is_self_explanatory(type_name, name):
    """True when type and name together explain a parameter: `RunId run`, `const LocalOptions& options`.

    A name explains itself when it is known in the whole tree, when its type is expected under it, or when it consists of
    consecutive words of its type, also in the plural of a container.
    """
    names, split = type_words(type_name)
    if name in KNOWN or BY_TYPE.get(name, set()) & set(names):
        return True
    container = re.search(r"\b(vector|span|map|set|deque|Queue|initializer_list)\b|<.*>|\.\.\.", type_name)
    for parts in split:
        parts = [part.lower() for part in parts]
        for start in range(len(parts)):
            for end in range(start + 1, len(parts) + 1):
                words_of_type = "_".join(parts[start:end])
                if name == words_of_type or container and name == words_of_type + "s":
                    return True
    return False


def words(element):
    parts = (part for tag in ("briefdescription", "detaileddescription", "inbodydescription") for part in element.findall(tag))
    return " ".join("".join(part.itertext()) for part in parts).strip()


def is_special(owner, member):
    """Construction without arguments, destruction, copies and moves."""
    name, type_name = member.findtext("name"), re.sub(r"<.*", "", owner).rsplit("::", 1)[-1]
    if name not in (type_name, "~" + type_name, "operator="):
        return False
    return all(re.match(rf"(const )?{type_name}( ?<.*>)? ?&", "".join(parameter.find("type").itertext()))
               for parameter in member.findall("param"))


def problems_of(kind, owner, member, heading, common):
    """Yields pairs of a symbol and its problem (none: documented); the first is the member itself.

    heading: of the group that it is in, or nothing; common: names of parameters that its class explains
    """
    name, text = f"{owner}::{member.findtext('name')}", words(member) or heading
    if is_special(owner, member):
        return
    types = {parameter.findtext("declname"): "".join(parameter.find("type").itertext())
             for parameter in member.findall("param") if parameter.findtext("declname")}
    is_constructor = member.findtext("name") == re.sub(r"<.*", "", owner).rsplit("::", 1)[-1]
    if not (is_constructor and all(is_self_explanatory(type_name, one) for one, type_name in types.items())):
        yield name, None if text else "has no comment"
    for value in member.findall("enumvalue"):
        yield f"{name}::{value.findtext('name')}", None if words(value) else "has no comment"
    if kind != "function" or text.startswith(("As ", "The same")) or "::operator" in name:
        return
    lists = [one for one in member.iter("parameterlist") if one.get("kind") == "param"]
    listed = {parameter.text for one in lists for parameter in one.iter("parametername")}
    for parameter in types:
        if parameter in PRONOUNS:
            yield name, f"names a parameter '{parameter}': a pronoun is no name"
    silent = [parameter for parameter, type_name in types.items()
              if parameter not in listed | common and not re.search(rf"\b{parameter}\b", text)
              and not is_self_explanatory(type_name, parameter)]
    if silent and text and text != heading and len(types) > 1:
        yield name, f"does not explain {', '.join(silent)}"


def main(folder):
    seen, found = set(), set()
    private = set()
    files = [path for path in sorted(folder.glob("*.xml")) if path.name != "index.xml"]
    compounds = [compound for path in files for compound in xml.etree.ElementTree.parse(path).getroot().iter("compounddef")]
    for compound in compounds:
        if compound.get("prot") == "private":
            private.add(compound.findtext("compoundname"))
    for compound in compounds:
        kind, owner = compound.get("kind"), compound.findtext("compoundname")
        if kind in ("page", "dir", "file") or any(owner == one or owner.startswith(one + "::") for one in private):
            continue
        if kind == "namespace" and not compound.findall("sectiondef") and not compound.findall("innerclass"):
            continue  # nothing of it is public
        seen.add(owner)
        if not words(compound):
            found.add(f"{owner} has no comment")
        common = {code.text for part in compound.findall("detaileddescription") + compound.findall("briefdescription")
                  for code in part.iter("computeroutput")}
        headings = {member.get("id"): section.findtext("header", "") for section in compound.findall("sectiondef")
                    if section.get("kind") == "user-defined" for member in section.findall("memberdef")}
        for member in compound.iter("memberdef"):
            if member.get("prot") == "private" or member.get("kind") == "define":
                continue
            place = member.find("location")
            where = f"{place.get('file')}:{place.get('line')}" if place is not None else ""
            for symbol, lack in problems_of(member.get("kind"), owner, member, headings.get(member.get("id"), ""), common):
                seen.add(symbol)
                if lack:
                    found.add(f"{where}: {symbol} {lack}")
    print("\n".join(sorted(found)))
    print(f"symbols: {len(seen)} public, {len(found)} problems")
    return 1 if found or not seen else 0


def self_test():
    explained = [("RunId", "run"), ("RunId", "id"), ("const TrialJobForm &", "form"), ("std::string_view", "text"),
                 ("const LocalOptions &", "options"), ("std::vector< Metric >", "metrics"), ("std::span< const double >",
                 "doubles"), ("TimePoint", "at"), ("Transition &", "out"), ("std::unique_ptr< Store >", "store"),
                 ("ParameterId", "parameter_id"), ("HTTPServer &", "server"), ("net::ServerOptions", "server_options")]
    unexplained = [("int", "number"), ("std::string", "value"), ("bool", "fast"), ("Duration", "first"), ("RunId", "runs"),
                   ("double", "text"), ("std::size_t", "at"), ("TrialId", "which"), ("const std::string &", "std")]
    wrong = [case for case in explained if not is_self_explanatory(*case)]
    wrong += [case for case in unexplained if is_self_explanatory(*case)]

    def found(declaration, text="Does it.", listed=()):
        """The problems of a function, whose parameters are pairs of type and name."""
        parameters = "".join(f"<param><type>{kind}</type><declname>{name}</declname></param>" for kind, name in declaration)
        items = "".join(f"<parameteritem><parametername>{name}</parametername></parameteritem>" for name in listed)
        member = xml.etree.ElementTree.fromstring(
            f"<memberdef kind='function'><name>f</name>{parameters}<briefdescription>{text}</briefdescription>"
            f"<detaileddescription><parameterlist kind='param'>{items}</parameterlist></detaileddescription></memberdef>")
        return [problem for _, problem in problems_of("function", "nni", member, "", set()) if problem]

    for declaration, text, listed, problems in [
            ([("RunId", "run"), ("Transition", "out")], "Does it.", (), 0),
            ([("int", "number")], "Does it.", (), 0),
            ([("int", "number"), ("bool", "fast")], "Does it.", (), 1),
            ([("int", "number"), ("bool", "fast")], "Does it number times, fast or not.", (), 0),
            ([("int", "number"), ("bool", "fast")], "Does it.", ("number", "fast"), 0),
            ([("int", "number"), ("bool", "fast")], "", (), 1),
            ([("RunId", "which")], "Does it.", ("which",), 1)]:
        if len(found(declaration, text, listed)) != problems:
            wrong.append((declaration, text, listed))
    for case in wrong:
        print(f"doc_symbols --self-test: wrong answer for {case}")
    print(f"doc_symbols --self-test: {len(explained) + len(unexplained) + 7} cases, {len(wrong)} wrong")
    return 1 if wrong else 0


if len(sys.argv) != 2:
    sys.exit(__doc__)
sys.exit(self_test() if sys.argv[1] == "--self-test" else main(pathlib.Path(sys.argv[1])))
