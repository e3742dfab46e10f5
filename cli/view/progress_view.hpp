// Progress on stderr: bars that are redrawn on a terminal, a plain line now and then anywhere else.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "cli/view/progress.hpp"
#include "cli/view/terminal.hpp"

namespace spark::cli {

// "imagenet: copying 61.2 of 142 GB (43 %), 2.31 GB/s, 36 s left, limited by: source"
std::string progress_in_words(const Progress& progress, const Eta& eta, SteadyTime now);

class ProgressView {
 public:
  ProgressView(std::ostream& err, const Terminal& terminal, const Clock& clock)
      : err_(err), terminal_(terminal), clock_(clock) {}

  void update(const Progress& progress);
  // A sentence of its own, above the bars.
  void note(const std::string& words);
  // Removes the bars, when the next output replaces them.
  void clear();

 private:
  struct Row {
    Progress progress;
    Eta eta;
    SteadyTime printed;
    std::string printed_phase, printed_line;
  };

  std::string bar_line(const Row& row, SteadyTime now) const;
  void erase_bars();
  void draw_bars(SteadyTime now);

  std::ostream& err_;
  const Terminal terminal_;
  const Clock& clock_;
  std::map<std::string, Row> rows_;  // by dataset
  std::vector<std::string> order_;   // datasets as they began
  std::size_t drawn_ = 0;            // lines of bars above the cursor
};

}  // namespace spark::cli
