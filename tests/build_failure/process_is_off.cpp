// expect: this needs the component process, which is off: link nni::process, or define NNI_WITH_HTTP=1 and
// A training service of a component that this program does not use.

#include <nni/nni.hpp>
#include <nni/platforms/local.hpp>

int main() {
  nni::Experiment experiment{nni::ExperimentOptions{.name = "off"}, nni::platforms::Local{}, nni::tuning::Random{}};
  experiment.run();
}
