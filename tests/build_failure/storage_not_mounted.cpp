// expect: the training service policy cannot mount this storage policy [(]nni::MountsFrom, promise 6 of nni::Storage[)]
// A service that reaches files by a remote path, over a storage that is a directory of this machine.

#include "build_failure/parts/policies.hpp"

struct Remote : parts::Service {
  using mount_type = nni::RemotePath;
};

parts::Composed<Remote, nni::storage::LocalDirectory> scheduler;
