// All waits of a volume in one place; unit tests shorten them.
#pragma once

#include "base/clock.hpp"

namespace spark::volumes {

struct Timings {
  Duration watch{1000};         // between two checks of a mounted volume
  Duration watch_closely{300};  // the same while it is not ready, so that its return is noticed immediately
  Duration probe{10'000};       // between two reads of a ready volume's superblock
  Duration leave{10'000};       // for a silent device, before a `down` is refused; between looks at a flush
  Duration mounted_state{10'000};  // between two checks of a ready volume's file system
  Duration io_silence{5'000};  // without completed I/O for this long, a device with I/O in progress is silent
  Duration flush_silence{60'000};    // the same during a flush before an unmount: it is given up
  Duration smart{60'000};            // between two queries about the target's drives
  Duration smart_refused{3600'000};  // the same for a target that did not answer one
  Duration probe_reader{2'000};      // between two reads if another host may publish
  Duration first_retry{1000}, longest_retry{5'000};
  Duration first_leave{2'000},
      longest_leave{30'000};       // between attempts to unmount an outdated or broken mount in use
  Duration settled{30'000};        // ready for this long: the next loss is a new one, and retried immediately
  Duration refused_retry{30'000};  // before a refused volume is checked again
  Duration namespace_wait{20'000};  // for a namespace to appear after the connect
  Duration namespace_poll{200};
  Duration namespace_rescan{2'000};  // before the kernel is asked to search for it again
  Duration fail_over{2'000};    // in addition to two keep-alives: for I/O to move from a dead path to another
  Duration link_doubt{1'000};   // good reads over a link that was down, before it is trusted
  Duration name_doubt{10'000};  // a path is down for this long: its target's name is resolved again
};

}  // namespace spark::volumes
