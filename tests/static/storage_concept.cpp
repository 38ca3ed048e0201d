// The smallest storage models the concept; without any one of its obligations it does not.

#include <nni/concepts/storage.hpp>
#include <nni/concepts/training_service.hpp>
#include <nni/platforms/in_process.hpp>
#include <nni/storage/local_directory.hpp>

namespace {

using namespace nni;

struct Smallest {
  using role = nni::role::storage;
  using mount_type = HostPath;
  awaitable<void> open(Context&);
  awaitable<void> upload(std::filesystem::path, RemotePath);
  awaitable<void> download(RemotePath, std::filesystem::path);
  awaitable<std::string> read(RemotePath, std::uint64_t, std::size_t);
  awaitable<std::vector<FileInfo>> list(RemotePath);
  awaitable<void> remove(RemotePath);
  HostPath mount(TrialId);
  awaitable<void> close();
};
static_assert(Storage<Smallest>);
static_assert(Storage<storage::LocalDirectory>);
static_assert(!WatchableStorage<Smallest>);

struct NoRole : Smallest {
  using role = void;
};
struct CannotOpen : Smallest {
  void open() = delete;
};
struct CannotUpload : Smallest {
  void upload() = delete;
};
struct CannotDownload : Smallest {
  void download() = delete;
};
struct CannotRead : Smallest {
  void read() = delete;
};
struct CannotList : Smallest {
  void list() = delete;
};
struct CannotRemove : Smallest {
  void remove() = delete;
};
struct MountsSomethingElse : Smallest {
  RemotePath mount(TrialId);
};
struct CannotClose : Smallest {
  void close() = delete;
};
struct NotAwaitable : Smallest {
  void close();
};
static_assert(!Storage<NoRole>);
static_assert(!Storage<CannotOpen>);
static_assert(!Storage<CannotUpload>);
static_assert(!Storage<CannotDownload>);
static_assert(!Storage<CannotRead>);
static_assert(!Storage<CannotList>);
static_assert(!Storage<CannotRemove>);
static_assert(!Storage<MountsSomethingElse>);
static_assert(!Storage<CannotClose>);
static_assert(!Storage<NotAwaitable>);

struct Watched : Smallest {
  awaitable<void> changed(RemotePath);
};
static_assert(WatchableStorage<Watched>);

// Who can mount from whom.
struct NeedsHostPath {
  using mount_type = HostPath;
};
struct RemoteStorage : Smallest {
  using mount_type = RemotePath;
};
static_assert(MountsFrom<platforms::InProcess, Smallest>);  // needs none
static_assert(MountsFrom<NeedsHostPath, storage::LocalDirectory>);
static_assert(!MountsFrom<NeedsHostPath, RemoteStorage>);

}  // namespace
