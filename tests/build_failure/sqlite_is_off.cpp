// expect: this needs the component sqlite, which is off: link nni::sqlite, or define NNI_WITH_SQLITE=1
// A store of a component that this program does not use.

#include <nni/datastore/sqlite.hpp>
#include <nni/nni.hpp>

int main() {
  nni::Experiment experiment{
      nni::ExperimentOptions{.name = "off"}, nni::platforms::InProcess{[](nni::TrialHandle&) {}}, nni::tuning::Random{},
      nni::datastore::Sqlite{{.directory = "somewhere"}}};
  experiment.run();
}
