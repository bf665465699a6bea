// argmax(x, axis=1)
module @tenon {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<4xi64>) {
    %1 = stablehlo.bitcast_convert %arg0 : (tensor<4x8xf32>) -> tensor<4x8xi32>
    %2 = stablehlo.constant dense<2147483647> : tensor<4x8xi32>
    %3 = stablehlo.and %1, %2 : tensor<4x8xi32>
    %4 = stablehlo.constant dense<0> : tensor<4x8xi32>
    %5 = stablehlo.compare LT, %1, %4, SIGNED : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi1>
    %6 = stablehlo.negate %3 : tensor<4x8xi32>
    %7 = stablehlo.select %5, %6, %3 : tensor<4x8xi1>, tensor<4x8xi32>
    %8 = stablehlo.compare NE, %arg0, %arg0, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %9 = stablehlo.select %8, %2, %7 : tensor<4x8xi1>, tensor<4x8xi32>
    %10 = stablehlo.iota dim = 1 : tensor<4x8xi64>
    %11 = stablehlo.constant dense<-2147483648> : tensor<i32>
    %12 = stablehlo.constant dense<9223372036854775807> : tensor<i64>
    %13:2 = "stablehlo.reduce"(%9, %10, %11, %12) ({
    ^bb0(%a: tensor<i32>, %i: tensor<i64>, %b: tensor<i32>, %j: tensor<i64>):
      %wins = stablehlo.compare GT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %same = stablehlo.compare EQ, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %first = stablehlo.compare LT, %i, %j, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %tie = stablehlo.and %same, %first : tensor<i1>
      %left = stablehlo.or %wins, %tie : tensor<i1>
      %key = stablehlo.select %left, %a, %b : tensor<i1>, tensor<i32>
      %index = stablehlo.select %left, %i, %j : tensor<i1>, tensor<i64>
      "stablehlo.return"(%key, %index) : (tensor<i32>, tensor<i64>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<4x8xi32>, tensor<4x8xi64>, tensor<i32>, tensor<i64>) -> (tensor<4xi32>, tensor<4xi64>)
    %15 = stablehlo.reshape %13#1 : (tensor<4xi64>) -> tensor<4x1xi64>
    %16 = stablehlo.reshape %15 : (tensor<4x1xi64>) -> tensor<4xi64>
    "func.return"(%16) : (tensor<4xi64>) -> ()
  }
}
