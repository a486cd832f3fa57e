// RUN: sheaf-opt --fork-calls=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --fork-calls=without=fork-calls %s | FileCheck %s --check-prefix=OFF

// OFF-NOT: sheaf.fork

// CHECK-DAG: remark: the call of node may read and runs beside what follows
// CHECK-DAG: remark: the calls of this map may read and run side by side

// The first of two calls that do not need each other; nothing follows the second.
// CHECK-LABEL: func.func @node
// CHECK: call @node(%{{.*}}) {sheaf.fork}
// CHECK: call @node(%{{.*}}) :
func.func @node(%x: tensor<f32>) -> f64 {
  %s = sheaf.read %x : (tensor<f32>) -> f64
  %a = func.call @node(%x) : (tensor<f32>) -> f64
  %b = func.call @node(%x) : (tensor<f32>) -> f64
  %r = arith.addf %a, %b : f64
  return %r : f64
}

// Who takes a tuple apart does not wait for it.
// CHECK-LABEL: func.func @pairs
// CHECK: call @pairs(%{{.*}}) {sheaf.fork}
// CHECK-NEXT: sheaf.get
// CHECK-NEXT: call @pairs(%{{.*}}) :
// CHECK-NEXT: sheaf.get
func.func @pairs(%x: tensor<f32>) -> tuple<f64, f64> {
  %s = sheaf.read %x : (tensor<f32>) -> f64
  %a = func.call @pairs(%x) : (tensor<f32>) -> tuple<f64, f64>
  %a0 = sheaf.get %a[0] : (tuple<f64, f64>) -> f64
  %b = func.call @pairs(%x) : (tensor<f32>) -> tuple<f64, f64>
  %b1 = sheaf.get %b[1] : (tuple<f64, f64>) -> f64
  %r = sheaf.tuple(%a0, %b1) : (f64, f64) -> tuple<f64, f64>
  return %r : tuple<f64, f64>
}

// The second call needs the first.
// CHECK-LABEL: func.func @chain
// CHECK-NOT: sheaf.fork
func.func @chain(%x: tensor<f32>) -> f64 {
  %a = func.call @leaf(%x) : (tensor<f32>) -> tensor<f32>
  %b = func.call @node(%a) : (tensor<f32>) -> f64
  return %b : f64
}

// What a fork takes of another it waits for itself: the third call runs beside both.
// CHECK-LABEL: func.func @handed
// CHECK: call @pairs(%{{.*}}) {sheaf.fork}
// CHECK: call @scaled(%{{.*}}) {sheaf.fork}
// CHECK: call @node(%{{.*}}) :
func.func @handed(%x: tensor<f32>) -> f64 {
  %a = func.call @pairs(%x) : (tensor<f32>) -> tuple<f64, f64>
  %a0 = sheaf.get %a[0] : (tuple<f64, f64>) -> f64
  %b = func.call @scaled(%a0, %x) : (f64, tensor<f32>) -> f64
  %c = func.call @node(%x) : (tensor<f32>) -> f64
  %r = arith.addf %b, %c : f64
  return %r : f64
}

// The last two run side by side; nothing runs beside the first, which both need.
// CHECK-LABEL: func.func @both
// CHECK: call @node(%{{.*}}) :
// CHECK: call @scaled(%{{.*}}) {sheaf.fork}
// CHECK: call @scaled(%{{.*}}) :
func.func @both(%x: tensor<f32>) -> f64 {
  %a = func.call @node(%x) : (tensor<f32>) -> f64
  %b = func.call @scaled(%a, %x) : (f64, tensor<f32>) -> f64
  %c = func.call @scaled(%a, %x) : (f64, tensor<f32>) -> f64
  %r = arith.addf %b, %c : f64
  return %r : f64
}

// What stands between two calls, and is for the second alone, goes into it; not what others need.
// CHECK: func.func private @between.then(%[[P:.*]]: tuple<f64, f64>, %[[X:.*]]: tensor<f32>) -> f64
// CHECK-NEXT: arith.constant 2.0
// CHECK-NEXT: sheaf.get %[[P]][0]
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: call @scaled(%{{.*}}, %[[X]])
// CHECK-LABEL: func.func @between
// CHECK: %[[A:.*]] = call @pairs(%{{.*}}) {sheaf.fork}
// CHECK: call @between.then(%[[A]], %{{.*}}) {sheaf.fork}
// CHECK: call @node(%{{.*}}) {sheaf.fork}
// CHECK: call @node(%{{.*}}) :
// CHECK: arith.mulf
// CHECK: call @scaled(%{{.*}}) {sheaf.fork}
// CHECK: call @node(%{{.*}}) :
func.func @between(%x: tensor<f32>) -> f64 {
  %a = func.call @pairs(%x) : (tensor<f32>) -> tuple<f64, f64>
  %a0 = sheaf.get %a[0] : (tuple<f64, f64>) -> f64
  %two = arith.constant 2.0 : f64
  %d = arith.mulf %a0, %two : f64
  %b = func.call @scaled(%d, %x) : (f64, tensor<f32>) -> f64
  %c = func.call @node(%x) : (tensor<f32>) -> f64
  %e = func.call @node(%x) : (tensor<f32>) -> f64
  %f = arith.mulf %e, %two : f64
  %g = func.call @scaled(%f, %x) : (f64, tensor<f32>) -> f64
  %h = func.call @node(%x) : (tensor<f32>) -> f64
  %r0 = arith.addf %b, %c : f64
  %r1 = arith.addf %r0, %g : f64
  %r2 = arith.addf %r1, %f : f64
  %r3 = arith.addf %r2, %h : f64
  return %r3 : f64
}

// An arm that only passes on what another call gives does not wait for it, either.
// CHECK: func.func private @past_branches.branch(%[[A:.*]]: f64) -> f64
// CHECK-NEXT: return %[[A]]
// CHECK-LABEL: func.func @past_branches
// CHECK: %[[A:.*]] = call @node(%{{.*}}) {sheaf.fork}
// CHECK: scf.if
// CHECK-NEXT: call @scaled(%[[A]], %{{.*}}) {sheaf.fork}
// CHECK: call @past_branches.branch(%[[A]]) {sheaf.fork}
// CHECK: } {sheaf.fork}
// CHECK: call @node(%{{.*}}) :
func.func @past_branches(%w: i1, %x: tensor<f32>) -> f64 {
  %a = func.call @node(%x) : (tensor<f32>) -> f64
  %b = scf.if %w -> f64 {
    %p = func.call @scaled(%a, %x) : (f64, tensor<f32>) -> f64
    scf.yield %p : f64
  } else {
    scf.yield %a : f64
  }
  %c = func.call @node(%x) : (tensor<f32>) -> f64
  %r = arith.addf %b, %c : f64
  return %r : f64
}

// What is handed on and needed there, too, is waited for there.
// CHECK-LABEL: func.func @early
// CHECK: call @node(%{{.*}}) :
// CHECK: call @scaled(%{{.*}}) {sheaf.fork}
// CHECK: call @node(%{{.*}}) :
func.func @early(%x: tensor<f32>) -> f64 {
  %a = func.call @node(%x) : (tensor<f32>) -> f64
  %b = func.call @scaled(%a, %x) : (f64, tensor<f32>) -> f64
  %d = arith.addf %a, %a : f64
  %c = func.call @node(%x) : (tensor<f32>) -> f64
  %r = arith.addf %b, %c : f64
  %s = arith.addf %r, %d : f64
  return %s : f64
}

// A branch waits for what its call takes; what decides which one is taken is waited for.
// CHECK-LABEL: func.func @into_branches
// CHECK: call @node(%{{.*}}) {sheaf.fork}
// CHECK: call @node(%{{.*}}) :
// CHECK: scf.if
// CHECK-NEXT: call @scaled(%{{.*}}) {sheaf.fork}
// CHECK: } {sheaf.fork}
// CHECK: call @node(%{{.*}}) :
func.func @into_branches(%x: tensor<f32>) -> f64 {
  %a = func.call @node(%x) : (tensor<f32>) -> f64
  %d = func.call @node(%x) : (tensor<f32>) -> f64
  %zero = arith.constant 0.0 : f64
  %w = arith.cmpf olt, %d, %zero : f64
  %b = scf.if %w -> f64 {
    %p = func.call @scaled(%a, %x) : (f64, tensor<f32>) -> f64
    scf.yield %p : f64
  } else {
    scf.yield %zero : f64
  }
  %c = func.call @node(%x) : (tensor<f32>) -> f64
  %r = arith.addf %b, %c : f64
  return %r : f64
}

// The calls of a map are not begun before what they take is there.
// CHECK-LABEL: func.func @into_map
// CHECK: call @node(%{{.*}}) :
// CHECK: sheaf.map
func.func @into_map(%x: tensor<f32>, %xs: !sheaf.list<f64>) -> f64 {
  %a = func.call @node(%x) : (tensor<f32>) -> f64
  %m = sheaf.map %xs : (!sheaf.list<f64>) -> !sheaf.list<f64> {
  ^bb0(%e: f64):
    %k = func.call @scaled(%a, %x) : (f64, tensor<f32>) -> f64
    sheaf.yield %k : f64
  }
  %c = func.call @node(%x) : (tensor<f32>) -> f64
  return %c : f64
}

func.func private @scaled(%s: f64, %x: tensor<f32>) -> f64 {
  %r = sheaf.read %x : (tensor<f32>) -> f64
  %t = arith.mulf %s, %r : f64
  return %t : f64
}

// Nothing of it reads.
// CHECK-LABEL: func.func @quiet
// CHECK-NOT: sheaf.fork
func.func @quiet(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %a = func.call @leaf(%x) : (tensor<f32>) -> tensor<f32>
  %b = func.call @leaf(%x) : (tensor<f32>) -> tensor<f32>
  return %a, %b : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @leaf
func.func @leaf(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// A body becomes a function of what it uses; constants are made inside.
// CHECK: func.func private @items.map(%[[E:.*]]: i64, %[[X:.*]]: tensor<f32>) -> i64
// CHECK: arith.constant 1 : i64
// CHECK: %[[Y:.*]] = sheaf.record @score(%[[X]])
// CHECK: sheaf.read %[[Y]]
// CHECK-LABEL: func.func @items
// CHECK: sheaf.map
// CHECK: call @items.map(%{{.*}}, %{{.*}}) {sheaf.fork}
func.func @items(%xs: !sheaf.list<i64>, %x: tensor<f32>) -> !sheaf.list<i64> {
  %one = arith.constant 1 : i64
  %r = sheaf.map %xs : (!sheaf.list<i64>) -> !sheaf.list<i64> {
  ^bb0(%e: i64):
    %y = sheaf.record @score(%x) weights [] : (tensor<f32>) -> tensor<f32>
    %s = sheaf.read %y : (tensor<f32>) -> f64
    %i = sheaf.convert %s : f64 to i64
    %j = arith.addi %i, %one : i64
    %k = arith.addi %j, %e : i64
    sheaf.yield %k : i64
  }
  return %r : !sheaf.list<i64>
}

// What it reads has been recorded before, whatever it records after: the first waits for all. In a
// loop what comes after a read comes before another.
// CHECK-LABEL: func.func @there
// CHECK-NOT: sheaf.fork
// CHECK-LABEL: func.func @again
// CHECK: call @again.map(%{{.*}}) {sheaf.fork}
func.func @there(%xs: !sheaf.list<tensor<f32>>, %c: i1) -> !sheaf.list<tensor<f32>> {
  %r = sheaf.map %xs : (!sheaf.list<tensor<f32>>) -> !sheaf.list<tensor<f32>> {
  ^bb0(%x: tensor<f32>):
    %s = sheaf.read %x : (tensor<f32>) -> f64
    %y = sheaf.record @score(%x) weights [] : (tensor<f32>) -> tensor<f32>
    %z = scf.if %c -> tensor<f32> {
      %d = sheaf.record @score(%y) weights [] : (tensor<f32>) -> tensor<f32>
      scf.yield %d : tensor<f32>
    } else {
      scf.yield %y : tensor<f32>
    }
    sheaf.yield %z : tensor<f32>
  }
  return %r : !sheaf.list<tensor<f32>>
}
func.func @again(%xss: !sheaf.list<!sheaf.list<tensor<f32>>>) -> !sheaf.list<f64> {
  %zero = arith.constant 0.0 : f64
  %r = sheaf.map %xss : (!sheaf.list<!sheaf.list<tensor<f32>>>) -> !sheaf.list<f64> {
  ^bb0(%xs: !sheaf.list<tensor<f32>>):
    %t = sheaf.fold %zero, %xs : (f64, !sheaf.list<tensor<f32>>) -> f64 {
    ^bb0(%a: f64, %x: tensor<f32>):
      %s = sheaf.read %x : (tensor<f32>) -> f64
      %y = sheaf.record @score(%x) weights [] : (tensor<f32>) -> tensor<f32>
      %u = sheaf.read %y : (tensor<f32>) -> f64
      %b = arith.addf %s, %u : f64
      sheaf.yield %b : f64
    }
    sheaf.yield %t : f64
  }
  return %r : !sheaf.list<f64>
}
sheaf.block @score args(1) {
^bb0(%x: tensor<f32>):
  %y = sheaf.apply "tanh"(%x) {} : (tensor<f32>) -> tensor<f32>
  sheaf.yield %y : tensor<f32>
}

// What reads in a branch is a call; other branches stay as they are. What follows calls as well.
// CHECK: func.func private @branches.branch(%[[T:.*]]: tensor<f32>) -> f64
// CHECK: call @node(%[[T]])
// CHECK: call @node(%[[T]])
// CHECK-LABEL: func.func @branches
// CHECK: scf.if
// CHECK-NEXT: %[[ONE:.*]] = func.call @branches.branch(%{{.*}}) {sheaf.fork}
// CHECK-NEXT: scf.yield %[[ONE]]
// CHECK: arith.constant 0.0
// CHECK: } {sheaf.fork}
// CHECK: sheaf.match
// CHECK: ^bb0(%[[F:.*]]: tensor<f32>):
// CHECK-NEXT: %[[TWO:.*]] = func.call @node(%[[F]]) {sheaf.fork}
// CHECK: } {sheaf.fork}
// CHECK: call @node(%{{.*}}) :
func.func @branches(%c: i1, %x: tensor<f32>, %d: !sheaf.data<@Maybe>) -> f64 {
  %a = scf.if %c -> f64 {
    %p = func.call @node(%x) : (tensor<f32>) -> f64
    %q = func.call @node(%x) : (tensor<f32>) -> f64
    %s = arith.addf %p, %q : f64
    scf.yield %s : f64
  } else {
    %zero = arith.constant 0.0 : f64
    scf.yield %zero : f64
  }
  %m = sheaf.match %d [0, 1] : (!sheaf.data<@Maybe>) -> f64 {
    %zero = arith.constant 0.0 : f64
    sheaf.yield %zero : f64
  }, {
  ^bb0(%f: tensor<f32>):
    %n = func.call @node(%f) : (tensor<f32>) -> f64
    sheaf.yield %n : f64
  }
  %b = func.call @node(%x) : (tensor<f32>) -> f64
  %r = arith.addf %a, %b : f64
  %t = arith.addf %r, %m : f64
  return %t : f64
}
sheaf.data @Maybe [#sheaf.ctor<"No", [], []>, #sheaf.ctor<"Yes", ["x"], [tensor<f32>]>]

// Only a read is in the branch, or only a read follows it: nothing worth a task.
// CHECK-LABEL: func.func @plain
// CHECK-NOT: sheaf.fork
func.func @plain(%c: i1, %x: tensor<f32>) -> f64 {
  %a = scf.if %c -> f64 {
    %p = sheaf.read %x : (tensor<f32>) -> f64
    scf.yield %p : f64
  } else {
    %zero = arith.constant 0.0 : f64
    scf.yield %zero : f64
  }
  %b = scf.if %c -> f64 {
    %p = func.call @node(%x) : (tensor<f32>) -> f64
    scf.yield %p : f64
  } else {
    %zero = arith.constant 0.0 : f64
    scf.yield %zero : f64
  }
  %d = sheaf.read %x : (tensor<f32>) -> f64
  %r = arith.addf %a, %b : f64
  %t = arith.addf %r, %d : f64
  return %t : f64
}

// The remainder by a constant that is not zero cannot fail, so it may wait with the second call.
// CHECK-LABEL: func.func @remainder
// CHECK: %[[A:.*]] = call @count(%{{.*}}) {sheaf.fork}
// CHECK: call @remainder.then(%[[A]], %{{.*}}) {sheaf.fork}
// CHECK: call @count
func.func @remainder(%n: i64, %x: tensor<f32>) -> i64 {
  %a = func.call @count(%n, %x) : (i64, tensor<f32>) -> i64
  %seven = arith.constant 7 : i64
  %m = sheaf.rem %a, %seven
  %b = func.call @count(%m, %x) : (i64, tensor<f32>) -> i64
  %c = func.call @count(%n, %x) : (i64, tensor<f32>) -> i64
  %r = arith.addi %b, %c : i64
  return %r : i64
}

// One by what may be zero has its place in the order of the program.
// CHECK-LABEL: func.func @perhaps
// CHECK: call @count(%{{.*}}) :
// CHECK: sheaf.rem
// CHECK: call @count(%{{.*}}) {sheaf.fork}
func.func @perhaps(%n: i64, %x: tensor<f32>) -> i64 {
  %a = func.call @count(%n, %x) : (i64, tensor<f32>) -> i64
  %m = sheaf.rem %a, %n
  %b = func.call @count(%m, %x) : (i64, tensor<f32>) -> i64
  %c = func.call @count(%n, %x) : (i64, tensor<f32>) -> i64
  %r = arith.addi %b, %c : i64
  return %r : i64
}
func.func @count(%n: i64, %x: tensor<f32>) -> i64 {
  %s = sheaf.read %x : (tensor<f32>) -> f64
  %c = func.call @count(%n, %x) : (i64, tensor<f32>) -> i64
  return %c : i64
}
