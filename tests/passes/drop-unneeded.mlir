// RUN: sheaf-opt --drop-unneeded %s | FileCheck %s

sheaf.data @Item [#sheaf.ctor<"Item", ["key", "rank"], [i64, i64]>]

// A part of a recursive function's result that no call takes is not computed, nor what it is made
// of; the check is, with what it takes.
// CHECK-LABEL: func.func @main
// CHECK: call @walk
// CHECK-NOT: sheaf.list_get
// CHECK: sheaf.get %{{.*}}[0]
// CHECK-NOT: sheaf.get
func.func @main(%n: i64, %xs: !sheaf.list<i64>) -> i64 {
  %r = call @walk(%n, %xs) : (i64, !sheaf.list<i64>) -> tuple<i64, i64>
  %a = sheaf.get %r[0] : (tuple<i64, i64>) -> i64
  %b = sheaf.get %r[1] : (tuple<i64, i64>) -> i64
  %unused = sheaf.list_get %xs[%b] : (!sheaf.list<i64>) -> i64
  return %a : i64
}

// CHECK-LABEL: func.func private @walk
// CHECK: sheaf.rem
// CHECK: sheaf.check
// CHECK: call @walk
// CHECK-NOT: sheaf.list_get
// CHECK: arith.addi
// CHECK-NOT: arith.addi
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK: sheaf.tuple(%{{.*}}, %[[ZERO]])
func.func private @walk(%n: i64, %xs: !sheaf.list<i64>) -> tuple<i64, i64> {
  %c1 = arith.constant 1 : i64
  %c3 = arith.constant 3 : i64
  %rest = sheaf.rem %n, %c3
  %holds = arith.cmpi ne, %rest, %c1 : i64
  sheaf.check %holds, "never one"
  %r = func.call @walk(%n, %xs) : (i64, !sheaf.list<i64>) -> tuple<i64, i64>
  %a = sheaf.get %r[0] : (tuple<i64, i64>) -> i64
  %b = sheaf.get %r[1] : (tuple<i64, i64>) -> i64
  %x = sheaf.list_get %xs[%n] : (!sheaf.list<i64>) -> i64
  %a1 = arith.addi %a, %c1 : i64
  %b1 = arith.addi %b, %x : i64
  %t = sheaf.tuple(%a1, %b1) : (i64, i64) -> tuple<i64, i64>
  return %t : tuple<i64, i64>
}

// The body of a map of which the length alone is taken; a part of what a fold carries; a field that
// no match takes; a check that guards what nothing takes, and one whose value is taken.
// CHECK-LABEL: func.func @lists
// CHECK: sheaf.map
// CHECK-NOT: sheaf.div
// CHECK: sheaf.yield
// CHECK: sheaf.fold
// CHECK: arith.addi
// CHECK-NOT: sheaf.div
// CHECK: sheaf.yield
// CHECK-NOT: sheaf.list_get
// CHECK: sheaf.construct
// CHECK-NOT: sheaf.check
// CHECK: sheaf.check %{{.*}}, "taken"
// CHECK-NOT: sheaf.guard
// CHECK: return
func.func @lists(%xs: !sheaf.list<i64>, %n: i64) -> (i64, i64, i64, !sheaf.token<"">) {
  %c0 = arith.constant 0 : i64
  %ys = sheaf.map %xs : (!sheaf.list<i64>) -> !sheaf.list<i64> {
  ^bb0(%x: i64):
    %q = sheaf.div %n, %x
    sheaf.yield %q : i64
  }
  %len = sheaf.len %ys : !sheaf.list<i64>
  %init = sheaf.tuple(%c0, %n) : (i64, i64) -> tuple<i64, i64>
  %end = sheaf.fold %init, %xs : (tuple<i64, i64>, !sheaf.list<i64>) -> tuple<i64, i64> {
  ^bb0(%acc: tuple<i64, i64>, %x: i64):
    %a = sheaf.get %acc[0] : (tuple<i64, i64>) -> i64
    %b = sheaf.get %acc[1] : (tuple<i64, i64>) -> i64
    %a1 = arith.addi %a, %x : i64
    %b1 = sheaf.div %b, %x
    %t = sheaf.tuple(%a1, %b1) : (i64, i64) -> tuple<i64, i64>
    sheaf.yield %t : tuple<i64, i64>
  }
  %sum = sheaf.get %end[0] : (tuple<i64, i64>) -> i64
  %rank = sheaf.list_get %xs[%n] : (!sheaf.list<i64>) -> i64
  %item = sheaf.construct 0(%sum, %rank) : (i64, i64) -> !sheaf.data<@Item>
  %key = sheaf.match %item [0] : (!sheaf.data<@Item>) -> i64 {
  ^bb0(%k: i64, %r: i64):
    sheaf.yield %k : i64
  }
  %in = arith.cmpi ult, %n, %sum : i64
  sheaf.check %in, "not taken" {sheaf.guard = 1 : i64}
  %unused = sheaf.convert %n {sheaf.guard = 1 : i64} : i64 to !sheaf.token<"">
  sheaf.check %in, "taken" {sheaf.guard = 2 : i64}
  %token = sheaf.convert %n {sheaf.guard = 2 : i64} : i64 to !sheaf.token<"">
  return %len, %sum, %key, %token : i64, i64, i64, !sheaf.token<"">
}
