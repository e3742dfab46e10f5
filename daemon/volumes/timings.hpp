// Every wait of a volume, in one place; unit tests shrink them.
#pragma once

#include "base/clock.hpp"

namespace spark::volumes {

struct Timings {
  Duration watch{1000};              // between two looks at a mounted volume
  Duration watch_closely{300};       // the same while it is not ready: its return is noticed at once
  Duration probe{10'000};            // between two reads of a ready volume's superblock
  Duration mounted_state{10'000};    // between two questions to a ready volume's file system
  Duration io_silence{5'000};        // no I/O has ended for so long: a device that owes an answer is silent
  Duration smart{60'000};            // between two questions about the target's drives
  Duration smart_refused{3600'000};  // the same of a target that did not answer one
  Duration probe_reader{2'000};      // the same where another host may publish
  Duration first_retry{1000}, longest_retry{5'000};
  Duration first_leave{2'000}, longest_leave{30'000};  // between attempts to leave an outdated mount in use
  Duration settled{30'000};         // ready for so long: the next loss is a new one, and retried at once
  Duration refused_retry{30'000};   // until a refused volume is looked at again
  Duration namespace_wait{20'000};  // for a namespace to appear after the connect
  Duration namespace_poll{200};
  Duration namespace_rescan{2'000};  // until the kernel is asked to look for it again
  Duration fail_over{2'000};         // beyond two keep-alives: until I/O left a dead path for another
  Duration link_doubt{1'000};        // good reads over a link that was down, until it is believed
  Duration name_doubt{10'000};       // a path is down for so long: its target's name is looked up again
};

}  // namespace spark::volumes
