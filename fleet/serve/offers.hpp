// The copies that peers ask for, kept with their file lists in memory.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "fleet/serve/offer.hpp"
#include "fleet/serve/published.hpp"

namespace spark::fleet {

// Where offers come from; a test has its own. Thread-safe.
class OfferSource {
 public:
  virtual ~OfferSource() = default;
  // Reads the set's list of files, which takes seconds for a million files. NotFound: this host does not have
  // the set.
  virtual Result<std::shared_ptr<Offer>> load(const std::string& set) = 0;
  // The state of the set, without its list of files. `from` is a host that stages it as well; 0: none.
  virtual SetState state(const std::string& set, NodeId from) = 0;
  // False: load it again. Fast.
  virtual bool is_current(const std::string& set, const Offer& offer) const = 0;
};

// The published copies of this host, and those that its workers are staging.
class LocalOffers final : public OfferSource {
 public:
  LocalOffers(std::filesystem::path boards, PublishedCopies& published)
      : boards_(std::move(boards)), published_(published) {}

  Result<std::shared_ptr<Offer>> load(const std::string& set) override;
  SetState state(const std::string& set, NodeId from) override;
  // False for a copy found damaged since. A copy in progress is replaced by its published form, which has a
  // known hash.
  bool is_current(const std::string& set, const Offer& offer) const override;

 private:
  std::filesystem::path boards_;
  PublishedCopies& published_;

  Result<std::shared_ptr<Offer>> published(const std::string& set) const;
};

// Thread-safe.
class Offers {
 public:
  // `patience`: for the load of another thread.
  explicit Offers(OfferSource& source, std::chrono::milliseconds patience = std::chrono::seconds(5))
      : source_(source), patience_(patience) {}

  // Null: this host does not have the set. The first thread that asks for a set loads it. Threads that ask
  // meanwhile wait for that load and share its result: one list per peer would take the host's memory. Null
  // as well if it does not end: its drive may hang.
  std::shared_ptr<Offer> find(const std::string& set, SteadyTime now);
  // Never waits for a list to be loaded: a host that had no answer for that long would read the set itself.
  // `from`: see OfferSource.
  SetState state(const std::string& set, NodeId from);
  // Frees the lists of copies that are no longer current, and of those that no peer asked for lately.
  void drop_unused(SteadyTime now);

 private:
  struct Kept {
    std::shared_ptr<Offer> offer;
    SteadyTime used_at;
  };
  struct Load {
    bool has_ended = false;
    std::shared_ptr<Offer> offer;
  };

  OfferSource& source_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable load_ended_;
  std::map<std::string, Kept> offers_;                  // by set name, also the next
  std::map<std::string, std::shared_ptr<Load>> loads_;  // running

  std::shared_ptr<Offer> known(const std::string& set);
  void keep(const std::string& set, const std::shared_ptr<Offer>& offer, SteadyTime now);
};

}  // namespace spark::fleet
