#!/usr/bin/env python3
"""Says which symbols of the interface have no comment. Called by scripts/docs.sh.

    scripts/doc_symbols.py XML      the XML output of Doxygen

Every namespace, type, concept, function, variable and enumerator says what it is. A function with several parameters says
what each of them is, by @param or by naming it in its sentences; of one parameter the sentence is enough. Constructors and
destructors that take nothing, copies and moves need no words, and what a policy has because its concept asks for it needs
none of its own. "As ..." and "The same ..." refer to the function above. The heading of a group (@name) speaks for its
members, and a class may say once, in code letters, what a parameter of its members is.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree


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
    """Yields (symbol, what it lacks); the first is the member itself.

    heading: of the group that it is in, or nothing; common: names of parameters that its class explains
    """
    name, text = f"{owner}::{member.findtext('name')}", words(member) or heading
    if is_special(owner, member):
        return
    yield name, None if text else "has no comment"
    for value in member.findall("enumvalue"):
        yield f"{name}::{value.findtext('name')}", None if words(value) else "has no comment"
    if kind != "function" or text.startswith(("As ", "The same")) or "::operator" in name:
        return
    names = [parameter.findtext("declname") for parameter in member.findall("param") if parameter.findtext("declname")]
    lists = [one for one in member.iter("parameterlist") if one.get("kind") == "param"]
    told = {parameter.text for one in lists for parameter in one.iter("parametername")}
    silent = [one for one in names if one not in told | common and not re.search(rf"\b{one}\b", text)]
    if silent and text and text != heading and (told or len(names) > 1):
        yield name, f"does not say what {', '.join(silent)} is"


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


sys.exit(main(pathlib.Path(sys.argv[1])))
