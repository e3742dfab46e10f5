// Which symlinks of a source are followed.
#pragma once

namespace spark::staging {

// Handling of symlinks that lead out of the copied set: absolute ones, and those that climb above its root.
// Keep: the link stays and is named in a warning. Copy: its target is copied in its place, if the target is
// on the source's own mount. Refuse: nothing is copied. CopyAll: as Copy, and for links inside the set too.
enum class OutsideLinks { Keep, Copy, Refuse, CopyAll };

}  // namespace spark::staging
