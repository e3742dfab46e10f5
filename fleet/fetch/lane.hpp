// The resources of one thread of an exchange.
#pragma once

#include "fleet/fetch/run.hpp"
#include "fleet/protocol/unit_body.hpp"
#include "staging/files/io/direct_io.hpp"

namespace spark::fleet {

struct ExchangeRun::Lane {
  Lane(const staging::CopyContext& context, staging::IoKind io, bool reads_direct)
      : buffer(kUnitBuffer), copier(context, io, staging::kFilesAtOnce, reads_direct) {}
  staging::IoBuffer buffer;
  staging::SmallFileCopier copier;
};

}  // namespace spark::fleet
