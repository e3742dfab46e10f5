// What happens to a worker at one of its system calls.
#pragma once

#include <functional>
#include <string>

namespace spark::histories::copies {

enum class Drive { Any, Source, Cache, State };
enum class Calls { Any, Reads, Writes, Names, Attributes, Flushes, Opens };

struct Fault {
  enum class Kind { None, Kill, Pause, Fail };
  Kind kind = Kind::None;
  Drive drive = Drive::Any;
  Calls calls = Calls::Any;
  unsigned nth = 1;    // the call among those of `drive` and `calls`
  int error = 0;       // for Fail
  bool lasts = false;  // for Fail: all later ones fail too
};

// "its 7th write to the cache's drive fails with EIO"
std::string in_words(const Fault& fault);

// In a worker, once: the fault will happen. `pause` returns when the worker may go on; it is told whether the
// state folder's drive holds it up. Returns the reason if that is not possible here, otherwise an empty
// string.
std::string arm(const Fault& fault, std::function<void(bool)> pause);
// Whether it is possible on this host: empty, or the reason.
std::string why_no_faults();

}  // namespace spark::histories::copies
