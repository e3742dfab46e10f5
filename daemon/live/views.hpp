// Live views: for each, a process that answers the kernel, and the descriptor of its connection, which
// outlives the process. A process that ends is replaced, and the kernel sends the next one what it had not
// answered. A view never stays without a process: where the kernel can't do that, or no process can be
// started, its connection ends, and its readers get an error.
//
// Each view has a number of its own: a dataset that is staged again gets another one, while programs still
// have files of the earlier one open.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "daemon/live/view_server.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::live {

// A copy that programs may have open, by a path of its view or since before it was shown.
struct ViewedCopy {
  std::string dataset;
  std::uint64_t generation = 0;  // 0: it is not published
};

class Views {
 public:
  // `request`: the first part of the workers' requests, {"cache": …}. `on_change`: a view was begun or has
  // ended.
  Views(asio::any_io_executor executor, workers::Runner& runner, const Clock& clock,
        std::function<json::object()> request, std::function<void()> on_change, KeptDescriptors kept,
        ViewTimings timings = {});

  // The number of a view that will begin, or has a problem; no earlier view had it. It must be ended in any
  // case. `demand`: for take_over() of a later daemon; its "owner" has a share of the views.
  std::uint64_t add(const std::string& dataset, json::object demand);
  // The copy can be read while it is made; no effect if that is known.
  void begin(std::uint64_t number);
  // Its worker says so. `is_whole`: all of it has failed, else a file.
  void note_failed(std::uint64_t number, const std::string& why, bool is_whole);
  // Where programs find it; empty: there is no view that answers, or it has failed.
  std::string folder_of(std::uint64_t number) const;
  // Why it could not be begun, or has failed; empty: it has not.
  std::string problem_of(std::uint64_t number) const;
  // It has been, or the source has changed: the next one may be.
  bool could_be_read(std::uint64_t number) const;
  // For people: the problem, or which files have failed; empty: all is well.
  std::string reason_of(std::uint64_t number) const;
  bool has(std::uint64_t number) const { return views_.contains(number); }
  std::vector<ViewedCopy> copies() const;
  bool has_copy_of(const std::string& dataset) const;

  // What is missing will not come.
  asio::awaitable<void> set_failed(std::uint64_t number, std::string reason);
  // Something is published: programs that open a path of the view from now on get it, if it is the view's
  // copy. False: it is that of another set, or there is no view any more.
  asio::awaitable<bool> show_copy(std::uint64_t number, std::string path, std::uint64_t generation);
  // No job uses it any more. Files that are still open can be read as long as they are.
  asio::awaitable<void> end(std::uint64_t number);
  // Before the daemon ends: no other process than the one that answers keeps a connection.
  asio::awaitable<void> stop();
  // Goes on with the views of an earlier daemon whose descriptors were kept, and removes the others, which a
  // second call tries again. Call before the first begin(). `why_not`: why none can go on; else empty.
  struct Earlier {
    std::uint64_t number = 0;
    std::string dataset, copy;  // copy: where it is published; else empty
    json::object demand;
  };
  asio::awaitable<std::vector<Earlier>> take_over(std::string why_not = "");

 private:
  ViewPtr find(std::uint64_t number) const;
  Result<> check_room(const std::string& owner) const;
  void start(const ViewPtr& view);
  asio::awaitable<void> run(ViewPtr view);

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  const Clock& clock_;
  std::function<json::object()> request_;
  std::function<void()> on_change_;
  KeptDescriptors kept_;
  ViewServer server_;
  std::map<std::uint64_t, ViewPtr> views_;  // by number
  std::uint64_t newest_ = 0;
};

}  // namespace spark::live
