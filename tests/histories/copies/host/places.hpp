// Where everything of a history is. All of it lies on file systems in memory, mounted in a namespace of this
// program only, so nothing is left on the host.
#pragma once

namespace spark::histories::copies::places {

inline constexpr char kRoot[] = "/mnt", kCache[] = "/mnt/cache", kState[] = "/mnt/state";
// The cache's drive again, where its copies are not read-only.
inline constexpr char kDrive[] = "/mnt/drive";

}  // namespace spark::histories::copies::places
