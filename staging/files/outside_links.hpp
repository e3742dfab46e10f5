// Which symlinks of a source are followed.
#pragma once

namespace spark::staging {

// What becomes of a symlink that leads out of what is copied: an absolute one, or one that climbs above its
// root. Keep: it stays a link, and is named in a warning. Copy: what it leads to is copied in its place, as
// long as that lies on the source's own mount. Refuse: nothing is copied.
enum class OutsideLinks { Keep, Copy, Refuse };

}  // namespace spark::staging
