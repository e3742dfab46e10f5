// The verbs that workers of this history run: the daemon's, and the engine alone as `spark-stage copy` does.
#pragma once

#include "daemon/workers/verbs/protocol.hpp"

namespace spark::histories::copies {

// Null: none of that name.
workers::Verb verb_called(const std::string& name);

}  // namespace spark::histories::copies
