// Runs coroutines on a test's own loop, always with a time limit.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>

namespace spark {

template <class Condition>
bool run_until(boost::asio::io_context& context, Condition condition,
               std::chrono::seconds longest = std::chrono::seconds(120)) {
  const auto end = std::chrono::steady_clock::now() + longest;
  while (!condition() && std::chrono::steady_clock::now() < end) {
    context.restart();
    context.run_for(std::chrono::milliseconds(2));
  }
  return condition();
}

// The coroutine's value. If it does not end in time: a test failure and no value; it may still end later.
template <class T>
std::optional<T> await(boost::asio::io_context& context, boost::asio::awaitable<T> work) {
  const auto value = std::make_shared<std::optional<T>>();
  auto keep = [](boost::asio::awaitable<T> inner,
                 std::shared_ptr<std::optional<T>> into) -> boost::asio::awaitable<void> {
    T ended = co_await std::move(inner);
    into->emplace(std::move(ended));
  };
  boost::asio::co_spawn(context, keep(std::move(work), value), boost::asio::detached);
  EXPECT_TRUE(run_until(context, [&] { return value->has_value(); })) << "it did not end in time";
  return std::move(*value);
}

}  // namespace spark
