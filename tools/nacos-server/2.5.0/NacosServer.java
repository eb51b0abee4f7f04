// SPDX-License-Identifier: MIT
import com.alibaba.nacos.core.code.ControllerMethodsCache;
import com.alibaba.nacos.sys.filter.NacosTypeExcludeFilter;
import java.util.List;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.AutoConfigurationExcludeFilter;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.TypeExcludeFilter;
import org.springframework.boot.context.event.ApplicationStartedEvent;
import org.springframework.boot.web.servlet.ServletComponentScan;
import org.springframework.context.annotation.ComponentScan;
import org.springframework.context.annotation.FilterType;
import org.springframework.context.event.EventListener;
import org.springframework.scheduling.annotation.EnableScheduling;

/** Starts a Nacos 2.x server from its library jars: the start class is in the console module, which is not published. */
@SpringBootApplication
@EnableScheduling
@ServletComponentScan("com.alibaba.nacos")
@ComponentScan(basePackages = "com.alibaba.nacos", excludeFilters = @ComponentScan.Filter(type = FilterType.CUSTOM,
    classes = {NacosTypeExcludeFilter.class, TypeExcludeFilter.class, AutoConfigurationExcludeFilter.class}))
public class NacosServer {
    private static final List<String> CONTROLLERS = List.of("core.controller", "naming.controllers",
        "config.server.controller");

    public static void main(String[] arguments) {
        SpringApplication.run(NacosServer.class, arguments);
    }

    /** Every /v1 path answers 501 until the controllers' packages are told to this cache. */
    @EventListener
    public void tellControllers(ApplicationStartedEvent event) {
        ControllerMethodsCache cache = event.getApplicationContext().getBean(ControllerMethodsCache.class);
        CONTROLLERS.forEach(p -> cache.initClassMethod("com.alibaba.nacos." + p));
    }
}
