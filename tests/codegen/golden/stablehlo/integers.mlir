// n // 3 + n % 3 + (n << 2)
module @tenon {
  func.func public @main(%arg0: tensor<4xi32>) -> (tensor<4xi32>) {
    %1 = stablehlo.constant dense<3> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %3 = stablehlo.constant dense<0> : tensor<4xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %5 = stablehlo.constant dense<-1> : tensor<4xi32>
    %6 = stablehlo.compare EQ, %2, %5, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %7 = stablehlo.or %4, %6 : tensor<4xi1>
    %8 = stablehlo.constant dense<1> : tensor<4xi32>
    %9 = stablehlo.select %7, %8, %2 : tensor<4xi1>, tensor<4xi32>
    %10 = stablehlo.negate %arg0 : tensor<4xi32>
    %11 = stablehlo.divide %arg0, %9 : tensor<4xi32>
    %12 = stablehlo.select %7, %10, %11 : tensor<4xi1>, tensor<4xi32>
    %13 = stablehlo.select %4, %3, %12 : tensor<4xi1>, tensor<4xi32>
    %14 = stablehlo.remainder %arg0, %9 : tensor<4xi32>
    %15 = stablehlo.select %7, %3, %14 : tensor<4xi1>, tensor<4xi32>
    %16 = stablehlo.compare NE, %15, %3, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %17 = stablehlo.compare LT, %arg0, %3, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %18 = stablehlo.compare LT, %2, %3, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %19 = stablehlo.xor %17, %18 : tensor<4xi1>
    %20 = stablehlo.and %16, %19 : tensor<4xi1>
    %21 = stablehlo.select %20, %8, %3 : tensor<4xi1>, tensor<4xi32>
    %22 = stablehlo.subtract %13, %21 : tensor<4xi32>
    %23 = stablehlo.compare LT, %15, %3, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %24 = stablehlo.xor %23, %18 : tensor<4xi1>
    %25 = stablehlo.and %16, %24 : tensor<4xi1>
    %26 = stablehlo.add %15, %2 : tensor<4xi32>
    %27 = stablehlo.select %25, %26, %15 : tensor<4xi1>, tensor<4xi32>
    %28 = stablehlo.add %22, %27 : tensor<4xi32>
    %29 = stablehlo.constant dense<2> : tensor<i32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %31 = stablehlo.constant dense<32> : tensor<4xi32>
    %32 = stablehlo.compare GE, %30, %31, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %33 = stablehlo.compare LT, %30, %3, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %34 = stablehlo.or %32, %33 : tensor<4xi1>
    %35 = stablehlo.constant dense<31> : tensor<4xi32>
    %36 = stablehlo.select %34, %35, %30 : tensor<4xi1>, tensor<4xi32>
    %37 = stablehlo.shift_left %arg0, %36 : tensor<4xi32>
    %38 = stablehlo.select %34, %3, %37 : tensor<4xi1>, tensor<4xi32>
    %39 = stablehlo.add %28, %38 : tensor<4xi32>
    "func.return"(%39) : (tensor<4xi32>) -> ()
  }
}
