// RUN: sheaf-opt --inline %s | FileCheck %s

// Bodies with regions are inlined as a whole, into regions too, at every call.
func.func private @clamp(%n: i64) -> i64 {
  %c0 = arith.constant 0 : i64
  %low = arith.cmpi slt, %n, %c0 : i64
  %r = scf.if %low -> (i64) {
    scf.yield %c0 : i64
  } else {
    scf.yield %n : i64
  }
  return %r : i64
}

// CHECK-LABEL: func.func @main
// CHECK: sheaf.map
// CHECK: scf.if
// CHECK: sheaf.yield
// CHECK: scf.if
// CHECK-NOT: call
func.func @main(%xs: !sheaf.list<i64>, %n: i64) -> (!sheaf.list<i64>, i64) {
  %ys = sheaf.map %xs : (!sheaf.list<i64>) -> !sheaf.list<i64> {
  ^bb0(%x: i64):
    %y = func.call @clamp(%x) : (i64) -> i64
    sheaf.yield %y : i64
  }
  %m = func.call @clamp(%n) : (i64) -> i64
  return %ys, %m : !sheaf.list<i64>, i64
}
