// expect: the data store policy has a member .on_trouble. that is not the hook nni::ReportsTrouble: declare it as a public .void on_trouble[(]TroubleListener[)]
// Two overloads, and neither is the hook.

#include "build_failure/parts/policies.hpp"

struct Complains : parts::Store {
  void on_trouble(int);
  void on_trouble(int, std::string);
};

parts::Composed<parts::Service, Complains> scheduler;
