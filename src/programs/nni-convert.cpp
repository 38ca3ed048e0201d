#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

#include <nni/core/error.hpp>
#include <nni/core/printable.hpp>
#include <nni/datastore/convert.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/datastore/sqlite.hpp>

namespace {

// A data store of the command line: `journal:DIRECTORY` or `sqlite:DIRECTORY`.
class StoreName {
 public:
  explicit StoreName(const std::string& text) {
    const std::size_t colon = text.find(':');
    kind = text.substr(0, colon);
    if (colon != std::string::npos) directory = text.substr(colon + 1);
    if ((kind != "journal" && kind != "sqlite") || directory.empty())
      throw nni::config_error(
          "store", "\"" + text + "\" is not a data store; use journal:DIRECTORY or sqlite:DIRECTORY");
#if !NNI_WITH_SQLITE
    if (kind == "sqlite")
      throw nni::config_error("store", "this program was built without SQLite; use journal:DIRECTORY");
#endif
  }

  std::string kind;
  std::filesystem::path directory;
};

// Calls a function with the named store.
template <class Use>
nni::datastore::Converted with_store(const StoreName& name, bool read_only, Use use) {
#if NNI_WITH_SQLITE
  if (name.kind == "sqlite") return use(nni::datastore::Sqlite{{.directory = name.directory, .read_only = read_only}});
#endif
  return use(nni::datastore::Journal{{.directory = name.directory, .read_only = read_only}});
}

}  // namespace

// Copies an experiment from one data store into another.
int main(int argc, char** argv) {
  CLI::App program{"Copies an experiment from one data store to another, so that the copy can be resumed."};
  program.footer(
      "A store is journal:DIRECTORY or sqlite:DIRECTORY; DIRECTORY is the parent of the experiments' directories.\n"
      "The source is only read, even while its experiment runs; the experiment must not exist in the target.");
  std::string from;
  std::string to;
  std::string id;
  program.add_option("FROM", from, "source store")->required();
  program.add_option("TO", to, "target store")->required();
  program.add_option("ID", id, "experiment id")->required();
  CLI11_PARSE(program, argc, argv);

  try {
    const StoreName source(from);
    const StoreName target(to);
    const nni::datastore::Converted copied = with_store(source, true, [&](auto reader) {
      return with_store(target, false, [&](auto writer) {
        return nni::datastore::convert(std::move(reader), std::move(writer), nni::ExperimentId(id));
      });
    });
    std::printf("%s: %llu trials, %llu values\n", nni::printable(id).c_str(),
                static_cast<unsigned long long>(copied.trials), static_cast<unsigned long long>(copied.metrics));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nni-convert: %s\n", nni::printable(error.what()).c_str());
    return 1;
  }
}
