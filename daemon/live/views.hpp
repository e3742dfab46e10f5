// Live views: for each, a process that answers the kernel, and the descriptor of its connection, which
// outlives the process. A process that ends is replaced, and the kernel sends the next one what it had not
// answered. A view never stays without a process: where the kernel can't do that, or no process can be
// started, its connection ends, and its readers get an error.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::live {

namespace asio = boost::asio;

// The service manager keeps descriptors through a restart of the daemon. Unset: none does.
struct KeptDescriptors {
  std::function<void(const std::string& name, int descriptor)> keep{};
  std::function<void(const std::string& name)> forget{};
  std::shared_ptr<std::map<std::string, UniqueFd>> earlier{};  // by name: what this daemon was started with
};

struct ViewTimings {
  Duration retry{100};  // after a process has ended; then doubled
  Duration longest_retry{5000};
  Duration without{30'000};  // without a process, until the connection ends
  Duration lived{1000};      // a process that answered for a shorter time counts as none
};

class Views {
 public:
  // `request`: the first part of the workers' requests, {"cache": …}. `on_change`: a view was begun or has
  // ended.
  Views(asio::any_io_executor executor, workers::Runner& runner, const Clock& clock,
        std::function<json::object()> request, std::function<void()> on_change, KeptDescriptors kept,
        ViewTimings timings = {});

  // The copy of the dataset can be read while it is made; no effect if there is a view already.
  void begin(const std::string& dataset);
  // Its worker says so. `is_whole`: all of it has failed, else a file.
  void note_failed(const std::string& dataset, const std::string& why, bool is_whole);
  // Where programs find it; empty: there is no view that answers, or it has failed.
  std::string folder_of(const std::string& dataset) const;
  // Why it could not be begun, or has failed; empty: it has not.
  std::string problem_of(const std::string& dataset) const;
  // For people: the problem, or which files have failed; empty: all is well.
  std::string reason_of(const std::string& dataset) const;
  bool has(const std::string& dataset) const { return views_.contains(dataset); }

  // What is missing will not come.
  asio::awaitable<void> set_failed(std::string dataset, std::string reason);
  // It is published: programs that open a path of the view from now on get the copy.
  asio::awaitable<void> show_copy(std::string dataset, std::string copy);
  // No job uses it any more. Files that are still open can be read as long as they are.
  asio::awaitable<void> end(std::string dataset);
  // Goes on with the views of an earlier daemon whose descriptors were kept, and removes the others. Call
  // before the first begin(). `why_not`: why none can go on; else empty.
  struct Earlier {
    std::string dataset;
    bool is_published = false;
  };
  asio::awaitable<std::vector<Earlier>> take_over(std::string why_not = "");

 private:
  struct View {
    std::string dataset;
    UniqueFd device{};
    std::string folder{}, set{};  // once it answers; see ViewMap::set()
    std::string problem{}, failed_file{};
    unsigned failed_files = 0;
    workers::Cancellation cancellation{};  // of its process
    bool can_resend = false;
    bool is_kept = false;                     // its descriptor is
    bool is_ending = false, is_over = false;  // over: it has no process any more
    json::object request{};                   // of its workers: a reload may change the cache's settings
    std::string name() const;                 // of its descriptor
  };
  using ViewPtr = std::shared_ptr<View>;

  asio::awaitable<void> run(ViewPtr view);
  asio::awaitable<void> serve(ViewPtr view);
  asio::awaitable<Result<>> ask(ViewPtr view, std::string verb, json::object more);
  void forget(View& view) const;
  void cut(View& view) const;

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  const Clock& clock_;
  std::function<json::object()> request_;
  std::function<void()> on_change_;
  KeptDescriptors kept_;
  ViewTimings timings_;
  std::map<std::string, ViewPtr> views_;  // by dataset
};

}  // namespace spark::live
