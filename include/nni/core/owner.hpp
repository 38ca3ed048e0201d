#pragma once

#include <memory>
#include <utility>

namespace nni {

/// Returns the owner's reference to an object that its own running operations keep alive.
///
/// When the last copy of this reference goes, `object->stop()` is called; the object itself lives until its last operation
/// has ended. References that the object makes of itself (`shared_from_this`) do not count as owners.
template <class T>
[[nodiscard]] std::shared_ptr<T> make_owner(std::shared_ptr<T> object) {
  T* const address = object.get();
  return std::shared_ptr<T>(address, [object = std::move(object)](T*) { object->stop(); });
}

}  // namespace nni
