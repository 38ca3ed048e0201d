#pragma once

#include <functional>
#include <string>

namespace nni {

/// Told why something has to wait, in a sentence for people; an empty one: it goes on. Called on the executor.
using TroubleListener = std::function<void(const std::string& reason)>;

}  // namespace nni
