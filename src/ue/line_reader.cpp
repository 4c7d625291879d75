#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>

#include "ue/terminal_chat.h"

namespace pallas::ue {

// Waits until the descriptor is readable and reads once, so that the descriptor stays blocking: it
// is shared with the shell, and with our own output where both are the terminal.
class LineReader::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& io, int descriptor, std::function<void(std::string)> on_line,
       std::function<void()> on_end)
      : io_(io),
        descriptor_(io),
        number_(::dup(descriptor)),
        on_line_(std::move(on_line)),
        on_end_(std::move(on_end)) {}
  ~Impl() {
    if (number_ >= 0 && !descriptor_.is_open()) ::close(number_);
  }

  void start() {
    boost::system::error_code ec;
    descriptor_.assign(number_, ec);
    // epoll takes no regular files, which never block.
    always_ready_ = static_cast<bool>(ec);
    next();
  }

  void stop() {
    stopped_ = true;
    boost::system::error_code ignored;
    if (descriptor_.is_open()) descriptor_.cancel(ignored);
  }

 private:
  void next() {
    const auto self = shared_from_this();
    if (always_ready_) {
      boost::asio::post(io_, [self] { self->read(); });
    } else {
      descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                             [self](boost::system::error_code ec) {
                               if (!ec) self->read();
                             });
    }
  }

  void read() {
    if (stopped_) return;
    std::array<char, 4096> bytes;
    const ssize_t count = ::read(number_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) return next();
    if (count <= 0) {
      if (!line_.empty()) on_line_(std::exchange(line_, {}));
      if (!stopped_) on_end_();
      return;
    }
    for (const char c : std::string_view(bytes.data(), static_cast<std::size_t>(count))) {
      if (c != '\n') {
        line_ += c;
        continue;
      }
      on_line_(std::exchange(line_, {}));
      if (stopped_) return;
    }
    next();
  }

  boost::asio::io_context& io_;
  boost::asio::posix::stream_descriptor descriptor_;
  int number_;
  std::function<void(std::string)> on_line_;
  std::function<void()> on_end_;
  std::string line_;
  bool always_ready_ = false;
  bool stopped_ = false;
};

LineReader::LineReader(boost::asio::io_context& io, int descriptor,
                       std::function<void(std::string)> on_line, std::function<void()> on_end)
    : impl_(std::make_shared<Impl>(io, descriptor, std::move(on_line), std::move(on_end))) {
  impl_->start();
}

LineReader::~LineReader() {
  impl_->stop();
}

}  // namespace pallas::ue
