// How many requests of what size a run has under way: given, remembered for a pair of drives, or found out
// while the first gigabytes are copied.
#pragma once

#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "staging/copy/lanes/options.hpp"

namespace spark::staging {

struct Shape {
  unsigned threads = 1;  // each with a ring
  unsigned lanes = 4;    // of each thread: requests under way
  Bytes chunk = 4 * kMiB;
  bool operator==(const Shape&) const = default;
};

// What the options ask for, the rest from the CPUs.
Shape shape_of(const CopyOptions& options);

// Threads that copy small files: each waits for its drive most of the time.
unsigned small_file_threads(const CopyOptions& options);

// Bytes that one read or write moves: a multiple of every alignment, at most a hash piece.
Bytes usable_chunk(Bytes wanted);

// Tries settings one after the other, each over a stretch of the run, then keeps the fastest.
class Tuning {
 public:
  struct Setting {
    unsigned lanes = 0;
    Bytes chunk = 0;
    bool operator==(const Setting&) const = default;
  };

  // The first setting is kept unless another is clearly faster. One alone is not tried.
  explicit Tuning(std::vector<Setting> settings);

  unsigned lanes() const { return lanes_; }
  Bytes chunk() const { return chunk_; }

  // Any thread: so much was copied just now.
  void moved(Bytes bytes, SteadyTime now);

  // The fastest, once all were tried; none when there was nothing to try.
  std::optional<Setting> found() const;

  // What the buffers have to hold.
  Setting largest() const;

 private:
  struct Trial {
    Setting setting;
    double bytes_per_second = 0;
  };
  std::atomic<unsigned> lanes_;
  std::atomic<Bytes> chunk_;
  std::atomic<bool> is_trying_;
  mutable std::mutex mutex_;
  std::vector<Trial> trials_;
  std::size_t current_ = 0;
  Bytes skipped_ = 0, counted_ = 0;  // of the current trial: begun under the one before; its own
  SteadyTime counting_since_{};

  void use(const Setting& setting);
  void end_trial(SteadyTime now);
};

// The settings to try for a run of this shape: the shape's own first.
std::vector<Tuning::Setting> settings_to_try(const Shape& shape);

// What was found for pairs of file systems, in a small JSON file that may be deleted at any time.
class TuningFile {
 public:
  explicit TuningFile(std::filesystem::path path) : path_(std::move(path)) {}
  std::optional<Tuning::Setting> find(const std::string& pair) const;
  void remember(const std::string& pair, const Tuning::Setting& setting) const;  // if it can

 private:
  std::filesystem::path path_;
};

// Names the file systems behind two descriptors, the same after a reboot; empty if they have no name.
std::string pair_of(int source, int destination);

}  // namespace spark::staging
