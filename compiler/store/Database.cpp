//===- Database.cpp - SQLite with exceptions ------------------------------===//
#include "compiler/store/Database.h"

#include <sqlite3.h>

namespace sheaf::store {

namespace {

[[noreturn]] void failWith(sqlite3 *handle, int code) {
  int kind = code & 0xFF;
  throw DatabaseError(kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB,
                      handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code));
}

} // namespace

Database::Database(const std::string &path, std::chrono::milliseconds patience) {
  int code =
      sqlite3_open_v2(path.c_str(), &handle_,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) {
    std::string message = handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
    sqlite3_close(handle_);
    throw DatabaseError(false, message);
  }
  sqlite3_busy_timeout(handle_, static_cast<int>(patience.count()));
  // The last process to close would write the log back, and wait for the disk.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  // Views and triggers of a file that was tampered with run nothing.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
}

Database::~Database() { sqlite3_close(handle_); }

void Database::run(const std::string &sql) {
  if (int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr); code != SQLITE_OK)
    failWith(handle_, code);
}

int64_t Database::number(const std::string &sql) {
  Statement query(*this, sql);
  return query.step() ? query.number(0) : 0;
}

Statement::Statement(Database &database, std::string_view sql) : database_(database) {
  int code = sqlite3_prepare_v2(database.handle_, sql.data(), static_cast<int>(sql.size()),
                                &handle_, nullptr);
  if (code != SQLITE_OK)
    failWith(database.handle_, code);
}

Statement::~Statement() { sqlite3_finalize(handle_); }

void Statement::fail() const {
  failWith(database_.handle_, sqlite3_extended_errcode(database_.handle_));
}

Statement &Statement::bind(int64_t value) {
  if (sqlite3_bind_int64(handle_, ++bound_, value) != SQLITE_OK)
    fail();
  return *this;
}

Statement &Statement::bind(std::string_view text) {
  if (sqlite3_bind_text64(handle_, ++bound_, text.data(), text.size(), SQLITE_STATIC,
                          SQLITE_UTF8) != SQLITE_OK)
    fail();
  return *this;
}

Statement &Statement::bind(std::span<const uint8_t> bytes) {
  // A null pointer would be no value at all.
  const void *data = bytes.empty() ? static_cast<const void *>("") : bytes.data();
  if (sqlite3_bind_blob64(handle_, ++bound_, data, bytes.size(), SQLITE_STATIC) != SQLITE_OK)
    fail();
  return *this;
}

bool Statement::step() {
  int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW)
    return true;
  bound_ = 0;
  if (code != SQLITE_DONE) {
    sqlite3_reset(handle_);
    fail();
  }
  sqlite3_reset(handle_);
  return false;
}

void Statement::finish() {
  while (step()) {
  }
}

int64_t Statement::number(int column) const { return sqlite3_column_int64(handle_, column); }

std::string_view Statement::text(int column) const {
  const auto *text = reinterpret_cast<const char *>(sqlite3_column_text(handle_, column));
  return text ? std::string_view(text, static_cast<size_t>(sqlite3_column_bytes(handle_, column)))
              : std::string_view();
}

std::span<const uint8_t> Statement::bytes(int column) const {
  const auto *bytes = static_cast<const uint8_t *>(sqlite3_column_blob(handle_, column));
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(handle_, column))};
}

Transaction::Transaction(Database &database) : database_(database) {
  database_.run("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!sqlite3_get_autocommit(database_.handle_))
    sqlite3_exec(database_.handle_, "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() { database_.run("COMMIT"); }

} // namespace sheaf::store
